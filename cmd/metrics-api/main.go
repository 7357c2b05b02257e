// Command metrics-api serves the custom metrics API, where a
// HorizontalPodAutoscaler reads the CPU utilization of a VmGroup.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/pflag"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/logs"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/privatecloud/operator/cmd/internal/buildinfo"
)

// version is set with -ldflags "-X main.version=...".
var version = "dev"

func main() {
	flags := pflag.NewFlagSet("metrics-api", pflag.ExitOnError)
	s := newServer(flags)
	logs.AddFlags(flags)
	showVersion := flags.Bool("version", false, "print the version and exit")
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
	reportVersion()
	err := s.run(genericapiserver.SetupSignalContext())
	if err != nil {
		klog.ErrorS(err, "the metrics API stopped with an error")
	}
	logs.FlushLogs()
	if err != nil {
		os.Exit(1)
	}
}

// reportVersion logs the version and exports it as a metric.
func reportVersion() {
	klog.InfoS("starting the metrics API", buildinfo.LogValues(version)...)
	legacyregistry.RawMustRegister(buildinfo.NewCollector(version))
}
