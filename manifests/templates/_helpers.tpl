{{/* What replaces `kafka-lag-adapter` in the names of objects. A CronJob's name has at most 52 characters. */}}
{{- define "adapter.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $own := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- default $own .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "adapter.account" -}}
{{- $account := .Values.serviceAccount -}}
{{- if $account.create }}{{ default (include "adapter.fullname" .) $account.name -}}
{{- else }}{{ required "serviceAccount.name: is needed where serviceAccount.create is false" $account.name }}{{ end -}}
{{- end -}}

{{/* (root, file) -> its object, changed by the patches that the values ask for, in the release's namespace and with its names
and labels. A namespace that is set stays. */}}
{{- define "adapter.object" -}}
{{- $root := first . -}}
{{- $object := $root.Files.Get (last .) | fromYaml -}}
{{- range splitList " " (include "adapter.components" $root) -}}
{{- range $root.Files.Get (printf "%s/patch-%s" . (base (last $))) | fromYamlArray -}}
{{- $value := ternary (list .value) .value (hasSuffix "/-" .path) -}}
{{- include "adapter.put" (list $object (dict (trimPrefix "/" .path) $value)) -}}
{{- end -}}
{{- end -}}
{{- include "adapter.rename" (list $root $object) -}}
{{- $_ := set $object.metadata "labels" (merge $object.metadata.labels (default dict $root.Values.extraLabels)) -}}
{{- if not (has $object.kind (list "APIService" "ClusterRole" "ClusterRoleBinding")) -}}
{{- $_ := set $object.metadata "namespace" (default $root.Release.Namespace $object.metadata.namespace) -}}
{{- end -}}
{{- range $object.subjects }}{{ $_ := set . "namespace" (default $root.Release.Namespace .namespace) }}{{ end -}}
{{- toYaml $object -}}
{{- end -}}

{{/* (root, map or list): sets the names and labels of the release, in place and at any depth. */}}
{{- define "adapter.rename" -}}
{{- $root := first . -}}
{{- $node := last . -}}
{{- range $key, $value := $node -}}
{{- if eq (toString $key) "resourceNames" -}}
{{- $names := list -}}
{{- range $value }}{{ $names = append $names (include "adapter.name" (list $root .)) }}{{ end -}}
{{- $_ := set $node $key $names -}}
{{- else if or (kindIs "map" $value) (kindIs "slice" $value) }}{{ include "adapter.rename" (list $root $value) -}}
{{- else if has $key (list "name" "secretName" "claimName" "serviceAccountName") -}}
{{- $isAccount := or (eq $key "serviceAccountName") (eq "ServiceAccount" (get $node "kind")) -}}
{{- $name := and $isAccount (eq $value "kafka-lag-adapter") | ternary "adapter.account" "adapter.name" -}}
{{- $_ := set $node $key (include $name (ternary $root (list $root $value) (eq $name "adapter.account"))) -}}
{{- else if eq (toString $key) "app.kubernetes.io/instance" }}{{ $_ := set $node $key $root.Release.Name -}}
{{- else if eq (toString $key) "app.kubernetes.io/managed-by" -}}
{{- $chart := printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" -}}
{{- $_ := set $node $key $root.Release.Service -}}
{{- $_ := set $node "helm.sh/chart" $chart -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* (root, name) -> the name in this release. */}}
{{- define "adapter.name" -}}
{{- if hasPrefix "kafka-lag-adapter" (last .) }}{{ include "adapter.fullname" (first .) }}{{ trimPrefix "kafka-lag-adapter" (last .) -}}
{{- else }}{{ last . }}{{ end -}}
{{- end -}}

{{/* (object, path -> value): the one way by which values get into objects. Sets each value in place, as in spec/ports/0/port;
an empty one other than 0 removes what is there. At a path that ends in /-, the value is a list that is appended. */}}
{{- define "adapter.put" -}}
{{- range $path, $value := last . -}}
{{- $keys := splitList "/" (trimSuffix "/-" $path) -}}
{{- $key := last $keys -}}
{{- $node := first $ -}}
{{- range initial $keys }}{{ $node = index $node (ternary (atoi .) . (kindIs "slice" $node)) }}{{ end -}}
{{- if hasSuffix "/-" $path -}}
{{- with $value }}{{ $_ := set $node $key (concat (default list (get $node $key)) (deepCopy .)) }}{{ end -}}
{{- else if or $value (eq (toString $value) "0") }}{{ $_ := set $node $key (deepCopy $value) -}}
{{- else }}{{ $_ := unset $node $key }}{{ end -}}
{{- end -}}
{{- end -}}

{{/* settings.yaml: the values that are the adapter's settings. */}}
{{- define "adapter.settings" -}}
{{- $settings := dict -}}
{{- range $key := list "clusters" "collection" "rules" "tenancy" "upstream" "customMetrics" "autoscalers" "series" "metrics" "history" -}}
{{- with index $.Values $key }}{{ $_ := set $settings $key . }}{{ end -}}
{{- end -}}
{{- toYaml $settings -}}
{{- end -}}

{{/* The folders whose patches apply. */}}
{{- define "adapter.components" -}}
{{- $history := include "adapter.history" . -}}
{{- $custom := .Values.customMetrics | default dict -}}
{{- $registers := $custom.register | ternary "custom-metrics" "" -}}
{{- $reads := "" -}}
{{- range list .Values.upstream $custom.upstream -}}
{{- if hasPrefix "/etc/kafka-lag-adapter/upstream/" ((. | default dict).caFile | default "") }}{{ $reads = "upstream" }}{{ end -}}
{{- end -}}
{{- $keeps := get (dict "volume" "report" "bucket" "report-bucket") $history -}}
{{- list (include "adapter.registration" .) $registers $reads $keeps | compact | join " " -}}
{{- end -}}

{{/* The component for what the adapter does not do: `tls-secret` if the serving certificate comes from elsewhere. */}}
{{- define "adapter.registration" -}}
{{- if and (include "adapter.certificate" .) (not (include "adapter.waits" .)) }}tls-secret
{{- else if not .Values.apiService.register }}no-registration{{ end -}}
{{- end -}}

{{/* The Secret of a serving certificate that the adapter does not manage. */}}
{{- define "adapter.certificate" -}}
{{- $own := ternary (printf "%s-tls" (include "adapter.fullname" .)) "" .Values.tls.certManager.enabled -}}
{{- default $own .Values.tls.existingSecret -}}
{{- end -}}

{{/* The APIServices that lead to this release; always none where Helm does not look into the cluster. */}}
{{- define "adapter.apiServices" -}}
{{- $names := list -}}
{{- range list "v1beta1.external.metrics.k8s.io" "v1beta1.custom.metrics.k8s.io" "v1beta2.custom.metrics.k8s.io" -}}
{{- $service := dig "spec" "service" dict (lookup "apiregistration.k8s.io/v1" "APIService" "" .) -}}
{{- $isOurs := and (eq $.Release.Namespace (dig "namespace" "" $service)) (eq (include "adapter.fullname" $) (dig "name" "" $service)) -}}
{{- if $isOurs }}{{ $names = append $names . }}{{ end -}}
{{- end -}}
{{- join " " $names -}}
{{- end -}}

{{/* "yes" in a running release with an APIService that does not trust another serving certificate yet: then the adapter keeps
its own, because kube-apiserver would refuse the other one. */}}
{{- define "adapter.waits" -}}
{{- $namespace := .Release.Namespace -}}
{{- $managed := dig "data" "ca.crt" "" (lookup "v1" "Secret" $namespace (printf "%s-serving" (include "adapter.fullname" .))) -}}
{{- $authority := dig "data" "ca.crt" "" (lookup "v1" "Secret" $namespace (include "adapter.certificate" .)) -}}
{{- $waits := "" -}}
{{- range splitList " " (include "adapter.apiServices" .) | compact -}}
{{- $bundle := dig "spec" "caBundle" "" (lookup "apiregistration.k8s.io/v1" "APIService" "" .) -}}
{{- $trusts := and (ne $bundle $managed) (contains (b64dec $authority | trim) (b64dec $bundle)) -}}
{{- if and $managed (not $trusts) }}{{ $waits = "yes" }}{{ end -}}
{{- end -}}
{{- $waits -}}
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

{{/* (root, image, end of the default tag) */}}
{{- define "adapter.image" -}}
{{- $root := first . -}}
{{- $image := index . 1 -}}
{{- with default $root.Values.image.registry $image.registry }}{{ . }}/{{ end -}}
{{- $image.repository -}}
{{- if $image.digest }}@{{ $image.digest }}{{ else }}:{{ default (printf "%s%s" $root.Chart.AppVersion (last .)) $image.tag }}{{ end -}}
{{- end -}}

{{/* (root, pod template): sets what the pods of adapter and report have in common. */}}
{{- define "adapter.pod" -}}
{{- $values := (first .).Values -}}
{{- $template := last . -}}
{{- include "adapter.put" (list $template (dict
  "metadata/labels" (merge $template.metadata.labels (default dict $values.podLabels) (default dict $values.extraLabels))
  "spec/imagePullSecrets" $values.imagePullSecrets
  "spec/priorityClassName" $values.priorityClassName
  "spec/nodeSelector" $values.nodeSelector
  "spec/tolerations" $values.tolerations
  "spec/securityContext" $values.podSecurityContext
)) -}}
{{- range concat (default list $template.spec.initContainers) $template.spec.containers -}}
{{- include "adapter.put" (list . (dict "imagePullPolicy" $values.image.pullPolicy "securityContext" $values.securityContext)) -}}
{{- end -}}
{{- with $values.persistence.existingClaim -}}
{{- range $template.spec.volumes }}{{ if .persistentVolumeClaim }}{{ $_ := set .persistentVolumeClaim "claimName" $values.persistence.existingClaim }}{{ end }}{{ end -}}
{{- end -}}
{{- end -}}
