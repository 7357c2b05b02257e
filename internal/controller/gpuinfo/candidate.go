package gpuinfo

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

// node is what a choice looks at of a Kubernetes node.
type node struct {
	name                      string
	ready, cordoned, deletion bool
}

func nodeOf(n *corev1.Node) node {
	is := node{name: n.Name, cordoned: n.Spec.Unschedulable, deletion: !n.DeletionTimestamp.IsZero()}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			is.ready = c.Status == corev1.ConditionTrue
		}
	}
	return is
}

// LeanNode leaves of a Node what a choice looks at: a cache holds them all.
func LeanNode(o any) (any, error) {
	n, ok := o.(*corev1.Node)
	if !ok {
		return o, nil
	}
	lean := &corev1.Node{TypeMeta: n.TypeMeta, Spec: corev1.NodeSpec{Unschedulable: n.Spec.Unschedulable}}
	lean.Name, lean.UID, lean.ResourceVersion, lean.DeletionTimestamp = n.Name, n.UID, n.ResourceVersion, n.DeletionTimestamp
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			lean.Status.Conditions = []corev1.NodeCondition{{Type: c.Type, Status: c.Status}}
		}
	}
	return lean, nil
}

// claim is a reservation as others see it.
type claim struct {
	uid          types.UID
	host         string
	since, until time.Time
}

// claimOf is the claim of a GPUInfo that has a reservation.
func claimOf(gpu *v1alpha1.GPUInfo) claim {
	held := gpu.Status.Reservation
	return claim{uid: gpu.UID, host: held.Host, since: held.Since.Time, until: held.Until.Time}
}

// before orders claims by age, then by UID: of two that do not fit together,
// the later one yields.
func (c claim) before(other claim) bool {
	return cmp.Or(c.since.Compare(other.since), cmp.Compare(c.uid, other.uid)) < 0
}

// hour is an hour in seconds, as reservations are counted.
const hour = int64(time.Hour / time.Second)

// left are the seconds until a claim is over; 0 when it is.
func (c claim) left(now time.Time) int64 {
	return max(0, int64(c.until.Sub(now)/time.Second))
}

// reserved sums up the seconds that are left of claims, by host.
func reserved(now time.Time, claims []claim, counts func(claim) bool) map[string]int64 {
	seconds := map[string]int64{}
	for _, c := range claims {
		if counts(c) {
			seconds[c.host] += c.left(now)
		}
	}
	return seconds
}

// candidate is a node that was looked at, with its server and host as far as
// they are known.
type candidate struct {
	node, host string
	// mhz and mb are what the server uses.
	mhz, mb int64
	// hours is for how long the host is available.
	hours int64
	// refusal says why the node does not suit; empty when it does.
	refusal string
}

// look examines a node for a need of hours, on hosts of which others have
// reserved so many seconds. Refusals name nothing that HostName does not, no
// use, and nothing of reservations that time alone changes.
func (s *scope) look(n node, gpuRequired bool, need int64, taken map[string]int64) candidate {
	c := candidate{node: n.name}
	servers := s.servers[n.name]
	if len(servers) == 1 {
		c.host, c.mhz, c.mb = servers[0].Host, int64(servers[0].CPUUsageMHz), int64(servers[0].MemoryUsageMB)
	}
	host, listed := s.hosts[c.host]
	c.hours = int64(host.AvailableHours)
	switch {
	case n.deletion:
		c.refusal = "the node is being deleted"
	case n.cordoned:
		c.refusal = "the node is cordoned"
	case !n.ready:
		c.refusal = "the node is not Ready"
	case len(servers) == 0:
		c.refusal = "the cloud has no server of this name"
	case len(servers) > 1:
		c.refusal = "the cloud has several servers of this name"
	case servers[0].State != cloud.StateActive:
		c.refusal = fmt.Sprintf("its server is %s, not %s", servers[0].State, cloud.StateActive)
	case c.host == "":
		c.refusal = "the cloud does not say on which host its server runs"
	case !listed:
		c.refusal = "the cloud does not list its host"
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
