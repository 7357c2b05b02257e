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
	// timeout bounds one round of reads from the API server, and lookupTimeout the look-up of a name.
	timeout       = 30 * time.Second
	lookupTimeout = 5 * time.Second
)

// platform excludes the addresses of the API server, of Services and of the operator itself.
type platform struct {
	api client.Reader
	// nodesSynced reports whether the addresses of all Nodes are excluded.
	nodesSynced func() bool
	to          *probe.Exclusion
	// servers are the names or addresses at which clients reach the API server.
	servers []string
	lookup  func(ctx context.Context, network, host string) ([]netip.Addr, error)
	// interfaces returns the addresses of this host with their networks, and local the one from
	// which it reaches the API server; nil outside of a Pod.
	interfaces func() ([]net.Addr, error)
	local      func(context.Context) (net.Addr, error)
	// from is the address that local returned last.
	from netip.Addr
}

// NeedLeaderElection returns false: a replica reads the addresses before it leads.
func (p *platform) NeedLeaderElection() bool { return false }

// Start reads the addresses again and again until ctx ends. It returns nil.
func (p *platform) Start(ctx context.Context) error {
	log := ctrl.Log.WithName("clusternet")
	if !cache.WaitForCacheSync(ctx.Done(), p.nodesSynced) {
		return nil
	}
	wait := retry / 2
	for {
		wait = min(2*wait, period)
		switch err := p.read(ctx); {
		case err == nil:
			p.to.MarkComplete()
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
	err := errors.Join(unlessForbidden(p.readEndpoints(ctx)), unlessForbidden(p.readServices(ctx)), p.readOwn(ctx))
	p.readServers(ctx)
	return err
}

// unlessForbidden returns err, unless it says that the operator lacks a right, which it logs: probes that worked
// before an upgrade continue where the rights were not upgraded.
func unlessForbidden(err error) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	ctrl.Log.WithName("clusternet").Error(err, "cannot read addresses of the cluster, so that readiness probes may connect to them: add the right to the ClusterRole of the operator")
	return nil
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
	p.to.Set(probe.Owner{Kind: kindAPIServer, Name: "endpoints"}, addresses...)
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
	p.to.Set(probe.Owner{Kind: kindServices}, networks...)
	return nil
}

// readServers excludes what clients of the API server connect to. A name that cannot be resolved
// does not prevent probes: a proxy may resolve it for the operator.
func (p *platform) readServers(ctx context.Context) {
	for _, host := range p.servers {
		found := parsed(host)
		if len(found) == 0 {
			lookup, cancel := context.WithTimeout(ctx, lookupTimeout)
			addresses, err := p.lookup(lookup, "ip", host)
			cancel()
			if err != nil {
				ctrl.Log.WithName("clusternet").V(1).Info("cannot resolve the name of the API server", "host", host, "error", err.Error())
				continue
			}
			for _, address := range addresses {
				found = append(found, probe.Single(address.WithZone("")))
			}
		}
		p.to.Set(probe.Owner{Kind: kindAPIServer, Name: host}, found...)
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
	p.findLocal(ctx)
	var own []netip.Prefix
	for _, i := range interfaces {
		network, err := netip.ParsePrefix(i.String())
		if err != nil {
			continue
		}
		own = append(own, probe.Single(network.Addr()))
		if network.Addr() == p.from && !p.to.Overlaps(kindNode, network) {
			own = append(own, network)
		}
	}
	p.to.Set(probe.Owner{Kind: kindOperator}, own...)
	return nil
}

// findLocal finds from which address this host reaches the API server. If that cannot be found out, which does
// not prevent probes, the last one stays.
func (p *platform) findLocal(ctx context.Context) {
	if p.local == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	from, err := p.local(ctx)
	if err != nil {
		ctrl.Log.WithName("clusternet").V(1).Info("cannot find out from which address this host reaches the API server", "error", err.Error())
		return
	}
	if udp, ok := from.(*net.UDPAddr); ok {
		p.from = udp.AddrPort().Addr().Unmap().WithZone("")
	}
}
