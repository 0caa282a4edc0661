{{/* What replaces `kafka-lag-adapter` in the names of objects. A CronJob's name has at most 52 characters. */}}
{{- define "adapter.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $own := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- default $own .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* (root, file) -> the file's text with the names and ports of this release. */}}
{{- define "adapter.text" -}}
{{- $root := first . -}}
{{- $text := $root.Files.Get (last .) -}}
{{- $named := "((?: (?:name|secretName|claimName|serviceAccountName|resourceNames): \\[?)|--service=|-config-map=)kafka-lag-adapter" -}}
{{- $text = regexReplaceAll $named $text (printf "${1}%s" (include "adapter.fullname" $root)) -}}
{{- $text = replace "/instance: kafka-lag-adapter" (printf "/instance: %s" $root.Release.Name) $text -}}
{{- $text = replace "/managed-by: kustomize" (printf "/managed-by: %s" $root.Release.Service) $text -}}
{{- $text | replace "6443" (toString $root.Values.port) | replace "8080" (toString $root.Values.metricsPort) -}}
{{- end -}}

{{/* (root, file) -> its object in the release's namespace, with the extra labels. A namespace that is set stays. */}}
{{- define "adapter.object" -}}
{{- $root := first . -}}
{{- $object := include "adapter.text" . | fromYaml -}}
{{- $_ := set $object.metadata "labels" (merge $object.metadata.labels $root.Values.extraLabels) -}}
{{- if not (has $object.kind (list "APIService" "ClusterRole" "ClusterRoleBinding")) -}}
{{- $_ := set $object.metadata "namespace" (default $root.Release.Namespace $object.metadata.namespace) -}}
{{- end -}}
{{- range $object.subjects -}}
{{- $_ := set . "namespace" (default $root.Release.Namespace .namespace) -}}
{{- end -}}
{{- toYaml $object -}}
{{- end -}}

{{/* settings.yaml: the values that are the adapter's settings. */}}
{{- define "adapter.settings" -}}
{{- $settings := dict -}}
{{- range $key := list "clusters" "collection" "rules" "tenancy" "upstream" "metrics" "history" -}}
{{- with index $.Values $key }}{{ $_ := set $settings $key . }}{{ end -}}
{{- end -}}
{{- toYaml $settings -}}
{{- end -}}

{{/* The component for what the adapter does not do: `tls-secret` if the serving certificate comes from elsewhere. */}}
{{- define "adapter.registration" -}}
{{- if or .Values.tls.certManager.enabled .Values.tls.existingSecret }}tls-secret
{{- else if not .Values.apiService.register }}no-registration{{ end -}}
{{- end -}}

{{/* Where the history is: `volume`, `bucket` or nothing. */}}
{{- define "adapter.history" -}}
{{- with (.Values.history | default dict).location -}}
{{- if not (hasPrefix "/" .) -}}bucket
{{- else if hasPrefix "/var/lib/kafka-lag-adapter/" . -}}volume
{{- else -}}{{ fail "history.location: a folder must be below /var/lib/kafka-lag-adapter/, where the volume is mounted" }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* (root, image) */}}
{{- define "adapter.image" -}}
{{- $image := last . -}}
{{- printf "%s:%s" $image.repository (default (first .).Chart.AppVersion $image.tag) -}}
{{- end -}}

{{/* (root, pod): sets where a pod runs and how it gets its image. */}}
{{- define "adapter.placement" -}}
{{- $pod := last . -}}
{{- range $key := list "imagePullSecrets" "priorityClassName" "nodeSelector" "tolerations" -}}
{{- with index (first $).Values $key }}{{ $_ := set $pod $key . }}{{ end -}}
{{- end -}}
{{- end -}}
