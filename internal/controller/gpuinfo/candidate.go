package gpuinfo

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

// node is the part of a Kubernetes node that a choice depends on.
type node struct {
	name       string
	providerID string
	// uuid is the system UUID that the guest reports, in lower case.
	uuid                      string
	ready, cordoned, deletion bool
}

func nodeOf(n *corev1.Node) node {
	is := node{name: n.Name, providerID: n.Spec.ProviderID, uuid: strings.ToLower(n.Status.NodeInfo.SystemUUID), cordoned: n.Spec.Unschedulable, deletion: !n.DeletionTimestamp.IsZero()}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			is.ready = c.Status == corev1.ConditionTrue
		}
	}
	return is
}

// key is what the servers of a node are looked up by.
func (n node) key() string {
	if n.providerID == "" && n.uuid == "" {
		return n.name
	}
	return n.providerID + " " + n.uuid + " " + n.name
}

// server returns the id of the node's server, as a cloud provider of this scheme or an administrator has set it:
// vsphere://ID, openstack:///ID, openstack://REGION/ID or privatecloud:///ID. It is empty for all other nodes.
func (n node) server() (scheme, id string) { return ServerOf(n.providerID) }

// ServerOf returns the scheme and the id of the server in the providerID of a Node; both are empty if it is none of the
// schemes whose ids a Cloud may have.
func ServerOf(providerID string) (scheme, id string) {
	scheme, path, _ := strings.Cut(providerID, "://")
	if !slices.Contains([]string{"vsphere", "openstack", "privatecloud"}, scheme) {
		return "", ""
	}
	return scheme, path[strings.LastIndexByte(path, '/')+1:]
}

// maxAddresses is how many addresses of a Node are kept.
const maxAddresses = 64

// LeanNode drops the parts of a Node that no choice depends on, except addresses, to which readiness
// probes must not connect: at most maxAddresses of the Node, and its networks of Pods, of which the
// API server allows two. The cache applies it to all nodes.
func LeanNode(o any) (any, error) {
	n, ok := o.(*corev1.Node)
	if !ok {
		return o, nil
	}
	lean := &corev1.Node{TypeMeta: n.TypeMeta, Spec: corev1.NodeSpec{Unschedulable: n.Spec.Unschedulable, ProviderID: n.Spec.ProviderID, PodCIDRs: n.Spec.PodCIDRs}}
	lean.Name, lean.UID, lean.ResourceVersion, lean.DeletionTimestamp = n.Name, n.UID, n.ResourceVersion, n.DeletionTimestamp
	lean.Status.NodeInfo.SystemUUID = n.Status.NodeInfo.SystemUUID
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			lean.Status.Conditions = []corev1.NodeCondition{{Type: c.Type, Status: c.Status}}
		}
	}
	for _, a := range n.Status.Addresses {
		if address, err := netip.ParseAddr(a.Address); err == nil && address.Zone() == "" && len(lean.Status.Addresses) < maxAddresses {
			lean.Status.Addresses = append(lean.Status.Addresses, corev1.NodeAddress{Address: a.Address})
		}
	}
	return lean, nil
}

// claim is the reservation of another GPUInfo.
type claim struct {
	uid          types.UID
	host         string
	since, until time.Time
}

// claimOf returns the claim of a GPUInfo that has a reservation.
func claimOf(gpu *pcapi.GPUInfo) claim {
	held := gpu.Status.Reservation
	return claim{uid: gpu.UID, host: held.Host, since: held.Since.Time, until: held.Until.Time}
}

// before orders claims by age, then by UID. If two do not fit together, the later
// one is given up.
func (c claim) before(other claim) bool {
	return cmp.Or(c.since.Compare(other.since), cmp.Compare(c.uid, other.uid)) < 0
}

// hour is an hour in seconds, as reservations are counted.
const hour = int64(time.Hour / time.Second)

// left returns the seconds until a claim ends; 0 if it has.
func (c claim) left(now time.Time) int64 {
	return max(0, int64(c.until.Sub(now)/time.Second))
}

// reserved sums up the seconds left of the claims that counts accepts.
func reserved(now time.Time, claims []claim, counts func(claim) bool) int64 {
	seconds := int64(0)
	for _, c := range claims {
		if counts(c) {
			seconds += c.left(now)
		}
	}
	return seconds
}

// candidate is a node with its server and host as far as they are known.
type candidate struct {
	node, host string
	// mhz and mb are the CPU and memory usage of the server.
	mhz, mb int64
	// hours is the number of hours for which the host is available.
	hours int64
	// refusal is why the node does not suit; empty if it does. unclear: what the cloud lists contradicts
	// Kubernetes, in which the node is Ready.
	refusal string
	unclear bool
}

// look examines whether a node suits for need hours. taken is the seconds that
// others have reserved, by host. A refusal contains no usage and nothing that time
// alone changes, so that the status is not written without need.
func (o *observation) look(n node, gpuRequired bool, need int64, taken map[string]int64) candidate {
	c := candidate{node: n.name}
	servers := o.servers[n.key()]
	_, id := n.server()
	if len(servers) == 1 {
		c.host, c.mhz, c.mb = servers[0].Host, int64(servers[0].CPUUsageMHz), int64(servers[0].MemoryUsageMB)
	}
	host, listed := o.hosts[c.host]
	c.hours = int64(host.AvailableHours)
	switch {
	case n.deletion:
		c.refusal = "the node is being deleted"
	case n.cordoned:
		c.refusal = "the node is cordoned"
	case !n.ready:
		c.refusal = "the node is not Ready"
	case len(servers) == 0 && id != "":
		c.refusal, c.unclear = "the cloud has no server with the id in the providerID of the node", true
	case len(servers) == 0:
		c.refusal, c.unclear = "the cloud has no server of this name that belongs to no VM object", true
	case len(servers) > 1:
		c.refusal, c.unclear = "the cloud has several servers of this name", true
	case servers[0].State != cloud.StateActive:
		c.refusal = fmt.Sprintf("its server is %s, not %s", servers[0].State, cloud.StateActive)
	case c.host == "":
		c.refusal, c.unclear = "the cloud does not say on which host its server runs", true
	case !listed:
		c.refusal, c.unclear = "the cloud does not list its host", len(o.hosts) == 0 // a host in maintenance may not be listed
	case gpuRequired && !host.GPU:
		c.refusal = "the host has no GPU"
	case !gpuRequired && host.GPU:
		c.refusal = "the host has a GPU, which is kept for those that require one"
	case c.hours < need:
		c.refusal = fmt.Sprintf("the host is available for %d hours, and %d are needed", c.hours, need)
	case c.hours-(taken[c.host]+hour-1)/hour < need:
		c.refusal = fmt.Sprintf("the host is available for %d hours, others have reserved too many of them, and %d are needed", c.hours, need)
	}
	return c
}
