package clusternet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/privatecloud/operator/internal/jitter"
	"github.com/privatecloud/operator/internal/probe"
)

const (
	// period is how often the addresses are read. Until they were read once, they are read after
	// retry, and then after twice the time of before.
	period = time.Minute
	retry  = time.Second
	// timeout bounds one round of reads.
	timeout = 30 * time.Second
)

// platform excludes the addresses of the API server, of Services and of the operator itself.
type platform struct {
	api client.Reader
	// nodes reports whether the addresses of all Nodes are excluded.
	nodes func() bool
	to    *probe.Exclusion
	// servers are the names or addresses at which clients reach the API server.
	servers []string
	lookup  func(ctx context.Context, network, host string) ([]netip.Addr, error)
	// interfaces returns the addresses of this host with their networks, and local the one from
	// which it reaches the API server; nil outside of a Pod.
	interfaces func() ([]net.Addr, error)
	local      func(context.Context) (net.Addr, error)
}

// NeedLeaderElection has a replica know the addresses before it leads.
func (p *platform) NeedLeaderElection() bool { return false }

// Start reads the addresses again and again until ctx ends. It returns nil.
func (p *platform) Start(ctx context.Context) error {
	log := ctrl.Log.WithName("clusternet")
	if !cache.WaitForCacheSync(ctx.Done(), p.nodes) {
		return nil
	}
	wait := retry / 2
	for {
		wait = min(2*wait, period)
		switch err := p.read(ctx); {
		case err == nil:
			p.to.Complete()
			wait = period
		case ctx.Err() == nil:
			log.Error(err, "cannot read the addresses of the cluster, to which readiness probes must not connect; before they were read once, guests are not probed")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait + jitter.Below(wait/10)):
		}
	}
}

// read reads all addresses once. What cannot be read stays as it was.
func (p *platform) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	p.readServers(ctx)
	return errors.Join(p.readEndpoints(ctx), p.readServices(ctx), p.readOwn(ctx))
}

// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices,resourceNames=kubernetes,verbs=get

// readEndpoints excludes the endpoints of the API server, if it publishes them.
func (p *platform) readEndpoints(ctx context.Context) error {
	var slice discoveryv1.EndpointSlice
	err := p.api.Get(ctx, client.ObjectKey{Namespace: "default", Name: "kubernetes"}, &slice)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read EndpointSlice default/kubernetes: %w", err)
	}
	var addresses []netip.Prefix
	for _, endpoint := range slice.Endpoints {
		for _, text := range endpoint.Addresses {
			addresses = append(addresses, parsed(text)...)
		}
	}
	p.to.Set(probe.Owner{Kind: apiServer, Name: "endpoints"}, addresses...)
	return nil
}

// +kubebuilder:rbac:groups=networking.k8s.io,resources=servicecidrs,verbs=list

// readServices excludes the networks of Services, which Pods answer. Before Kubernetes 1.33, they are
// not known.
func (p *platform) readServices(ctx context.Context) error {
	var list networkingv1.ServiceCIDRList
	if err := p.api.List(ctx, &list); err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("list ServiceCIDRs: %w", err)
	}
	var networks []netip.Prefix
	for i := range list.Items {
		for _, text := range list.Items[i].Spec.CIDRs {
			if network, err := netip.ParsePrefix(text); err == nil {
				networks = append(networks, network)
			}
		}
	}
	p.to.Set(probe.Owner{Kind: services}, networks...)
	return nil
}

// readServers excludes what clients of the API server connect to. A name that cannot be resolved
// does not prevent probes: a proxy may resolve it for the operator.
func (p *platform) readServers(ctx context.Context) {
	for _, host := range p.servers {
		found := parsed(host)
		if len(found) == 0 {
			addresses, err := p.lookup(ctx, "ip", host)
			if err != nil {
				ctrl.Log.WithName("clusternet").V(1).Info("cannot resolve the name of the API server", "host", host, "error", err.Error())
				continue
			}
			for _, address := range addresses {
				found = append(found, probe.Single(address.WithZone("")))
			}
		}
		p.to.Set(probe.Owner{Kind: apiServer, Name: host}, found...)
	}
}

// readOwn excludes the addresses of this host, which is the operator's Pod. With them it excludes
// the network of the interface from which it reaches the API server: on a bridge, the Node's Pods
// are in it. It does not if a Node is in that network, too, because servers of VMs may be there, and
// neither are networks of other interfaces excluded, which may be those of VMs.
func (p *platform) readOwn(ctx context.Context) error {
	interfaces, err := p.interfaces()
	if err != nil {
		return fmt.Errorf("read the addresses of this host: %w", err)
	}
	local := netip.Addr{}
	if p.local != nil {
		from, err := p.local(ctx)
		if err != nil {
			return fmt.Errorf("find out from which address this host reaches the API server: %w", err)
		}
		if udp, ok := from.(*net.UDPAddr); ok {
			local = udp.AddrPort().Addr().Unmap().WithZone("")
		}
	}
	var own []netip.Prefix
	for _, i := range interfaces {
		network, err := netip.ParsePrefix(i.String())
		if err != nil {
			continue
		}
		own = append(own, probe.Single(network.Addr()))
		if network.Addr() == local && !p.to.Overlaps(nodes, network) {
			own = append(own, network)
		}
	}
	p.to.Set(probe.Owner{Kind: operator}, own...)
	return nil
}
