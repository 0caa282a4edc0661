// helm and kubectl, which contains kustomize, in one program, because they share most of their code. It is called by the
// name of the tool, as BusyBox is.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	helm "helm.sh/helm/v4/pkg/cmd"
	"helm.sh/helm/v4/pkg/kube"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	switch tool := filepath.Base(os.Args[0]); tool {
	case "helm":
		os.Exit(runHelm())
	case "kubectl":
		if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
			kubectlutil.CheckErr(err)
		}
	default:
		fmt.Fprintf(os.Stderr, "call this program as helm or kubectl, not as %s\n", tool)
		os.Exit(2)
	}
}

func runHelm() int {
	kube.ManagedFieldsManager = "helm" // not the name of this program
	command, err := helm.NewRootCmd(os.Stdout, os.Args[1:], helm.SetupLogging)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	err = command.Execute()
	var failed helm.CommandError
	switch {
	case errors.As(err, &failed):
		return failed.ExitCode
	case err != nil:
		return 1
	}
	return 0
}
