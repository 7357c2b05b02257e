// Command seedcontroller is a peer of the operator in make bench-peers: a controller for
// VM objects as tutorials write it with client-go. It has an informer, a work queue and one
// poll of the cloud for each object.
//
//	main.go        flags, and the start of the controller
//	controller.go  informer, work queue and the life of a VM
//	cloud.go       the calls of the cloud
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

type options struct {
	cloud, health string
	workers       int
	poll          time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.cloud, "cloud", "", "the `URL` of the cloud")
	flag.StringVar(&o.health, "health-probe-bind-address", "127.0.0.1:0", "the `address` of /readyz")
	flag.IntVar(&o.workers, "workers", 16, "number of VMs that are processed concurrently")
	flag.DurationVar(&o.poll, "poll-interval", 30*time.Second, "time between two polls of a VM")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "seedcontroller:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	vms, err := newClient(os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	var ready atomic.Bool
	served, err := serve(o.health, &ready)
	if err != nil {
		return err
	}
	c := newController(vms, newCloudClient(o.cloud, o.workers), o.poll)
	return errors.Join(c.run(ctx, o.workers, func() { ready.Store(true) }), served.Close())
}

// newClient returns a client for VM objects, without a limit on its rate.
func newClient(kubeconfig string) (rest.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	scheme := runtime.NewScheme()
	if err := pcapi.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("adding the kinds: %w", err)
	}
	metav1.AddToGroupVersion(scheme, pcapi.GroupVersion)
	version := pcapi.GroupVersion
	config.QPS, config.UserAgent = -1, "seed-controller"
	config.GroupVersion, config.APIPath = &version, "/apis"
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	return rest.RESTClientFor(config)
}

// serve answers /readyz with 200 once ready is set.
func serve(address string, ready *atomic.Bool) (*http.Server, error) {
	mux := http.NewServeMux()
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !ready.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listening for /readyz: %w", err)
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Second}
	go func() { _ = server.Serve(listener) }()
	return server, nil
}
