// Package clusternet finds the addresses of the cluster that the operator runs in, to which
// readiness probes must not connect.
//
//	clusternet.go  starts both
//	nodes.go       those of Nodes and their Pods, from the cache
//	platform.go    those of the API server, of Services and of the operator itself
package clusternet

import (
	"context"
	"fmt"
	"net"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/privatecloud/operator/internal/probe"
)

// Follow excludes the addresses of the cluster of a manager while the manager runs, whether it
// leads or not. The Exclusion is complete once all were read.
func Follow(ctx context.Context, mgr manager.Manager, to *probe.Exclusion) error {
	informer, err := mgr.GetCache().GetInformer(ctx, &corev1.Node{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("start the cache of Nodes: %w", err)
	}
	registration, err := informer.AddEventHandler(nodeHandler{to})
	if err != nil {
		return fmt.Errorf("follow Nodes: %w", err)
	}
	server, _, err := rest.DefaultServerUrlFor(mgr.GetConfig())
	if err != nil {
		return fmt.Errorf("read the address of the API server: %w", err)
	}
	service := os.Getenv("KUBERNETES_SERVICE_HOST") // set in Pods
	p := &platform{
		api: mgr.GetAPIReader(), nodesSynced: registration.HasSynced, to: to, servers: []string{server.Hostname()},
		lookup: net.DefaultResolver.LookupNetIP, interfaces: net.InterfaceAddrs,
	}
	if service != "" {
		p.servers = append(p.servers, service)
		p.local = func(ctx context.Context) (net.Addr, error) { return localAddress(ctx, service) }
	}
	if err := mgr.Add(p); err != nil {
		return fmt.Errorf("add what reads the addresses of the platform: %w", err)
	}
	return nil
}

// localAddress returns the address from which this process reaches a host, without sending
// anything.
func localAddress(ctx context.Context, host string) (net.Addr, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "udp", net.JoinHostPort(host, "443"))
	if err != nil {
		return nil, err
	}
	return conn.LocalAddr(), conn.Close()
}
