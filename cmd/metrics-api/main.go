// The metrics API of the private-cloud operator: what a HorizontalPodAutoscaler
// asks for the CPU use of a VmGroup.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/pflag"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/logs"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// version is set by the linker.
var version = "dev"

func main() {
	flags := pflag.NewFlagSet("metrics-api", pflag.ExitOnError)
	s := newServer(flags)
	logs.AddFlags(flags)
	showVersion := flags.Bool("version", false, "print the version and end")
	if err := flags.Parse(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if *showVersion {
		fmt.Println(version)
		return
	}
	logs.InitLogs()
	ctrl.SetLogger(klog.Background())
	err := s.run(genericapiserver.SetupSignalContext())
	if err != nil {
		klog.ErrorS(err, "the metrics API ended")
	}
	logs.FlushLogs()
	if err != nil {
		os.Exit(1)
	}
}
