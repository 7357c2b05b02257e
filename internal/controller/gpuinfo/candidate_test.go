package gpuinfo

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/privatecloud/operator/internal/cloud"
)

func TestLookRefusesNodesThatDoNotSuit(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*observation)
		noGPU  bool
		taken  time.Duration
		want   string
	}{
		"a node that suits":            {want: ""},
		"a node that is being deleted": {change: nodeIs(1, func(n *node) { n.deletion = true }), want: "the node is being deleted"},
		"a cordoned node":              {change: nodeIs(1, func(n *node) { n.cordoned = true }), want: "the node is cordoned"},
		"a node that is not Ready":     {change: nodeIs(1, func(n *node) { n.ready = false }), want: "the node is not Ready"},
		"a node without a server":      {change: func(s *observation) { s.servers["n1"] = nil }, want: "the cloud has no server of this name that belongs to no VM object"},
		"a node whose providerID no server has": {change: func(s *observation) {
			nodeIs(1, func(n *node) { n.providerID = "openstack:///x" })(s)
		}, want: "the cloud has no server with the id in the providerID of the node"},
		"a node with two servers of its name": {
			change: func(s *observation) { s.servers["n1"] = append(s.servers["n1"], cloud.Server{ID: "other", Name: "n1"}) },
			want:   "the cloud has several servers of this name",
		},
		"a server that is stopped":                     {change: serverIs("n1", func(s *cloud.Server) { s.State = cloud.StateStopped }), want: "its server is STOPPED, not ACTIVE"},
		"a server without a host":                      {change: serverIs("n1", func(s *cloud.Server) { s.Host = "" }), want: "the cloud does not say on which host its server runs"},
		"a host that is not listed":                    {change: serverIs("n1", func(s *cloud.Server) { s.Host = "h9" }), want: "the cloud does not list its host"},
		"a host without the GPU":                       {change: hostIs("h1", false, 100), want: "the host has no GPU"},
		"a host with a GPU, none required":             {noGPU: true, want: "the host has a GPU, which is kept for those that require one"},
		"a host without a GPU, none required":          {noGPU: true, change: hostIs("h1", false, 100), want: ""},
		"a host that is available exactly long enough": {change: hostIs("h1", true, 10), want: ""},
		"a host that is not available long enough":     {change: hostIs("h1", true, 9), want: "the host is available for 9 hours, and 10 are needed"},
		"a host with enough hours left":                {taken: 90 * time.Hour, want: ""},
		"a host with a part of an hour too few left": {
			taken: 90*time.Hour + time.Second,
			want:  "the host is available for 100 hours, others have reserved too many of them, and 10 are needed",
		},
		"a host with an hour too few left":         {taken: 91 * time.Hour, want: "the host is available for 100 hours, others have reserved too many of them, and 10 are needed"},
		"a host with more reserved than available": {change: hostIs("h1", true, 50), taken: 60 * time.Hour, want: "the host is available for 50 hours, others have reserved too many of them, and 10 are needed"},
	} {
		t.Run(name, func(t *testing.T) {
			s := world(1)
			if test.change != nil {
				test.change(s)
			}
			got := s.look(s.nodes[0], !test.noGPU, 10, map[string]int64{"h1": int64(test.taken.Seconds()), "h2": 1000 * hour})
			if diff := cmp.Diff(test.want, got.refusal); diff != "" {
				t.Errorf("refusal (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReservedSumsSecondsByHost(t *testing.T) {
	var claims []claim
	for i, left := range []time.Duration{-time.Hour, 0, time.Second, 90 * time.Minute, time.Second - 1} {
		claims = append(claims, claim{host: "h1", until: noon.Add(left), since: noon.Add(time.Duration(i))})
	}
	for range 100 { // more than a time.Duration holds
		claims = append(claims, claim{host: "h2", until: noon.Add(87600 * time.Hour)})
	}
	claims = append(claims, claim{uid: "not counted", host: "h1", until: noon.Add(time.Hour)})
	got := map[string]int64{}
	for _, host := range []string{"h1", "h2", "h3"} {
		got[host] = reserved(noon, claims, func(c claim) bool { return c.uid == "" && c.host == host })
	}
	if diff := cmp.Diff(map[string]int64{"h1": 5401, "h2": 8760000 * hour, "h3": 0}, got); diff != "" {
		t.Errorf("seconds (-want +got):\n%s", diff)
	}
}

func TestLeanNodeKeepsAddressesInBoundedSize(t *testing.T) {
	full := &corev1.Node{Spec: corev1.NodeSpec{PodCIDR: "10.244.1.0/24", PodCIDRs: []string{"10.244.1.0/24", "fd00:244:1::/64"}}}
	full.Status.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeHostName, Address: "n1"},
		{Type: corev1.NodeInternalIP, Address: "10.0.0.5"},
		{Type: corev1.NodeExternalIP, Address: "2a00::5"},
		{Type: corev1.NodeInternalDNS, Address: strings.Repeat("long.", 50) + "example.com"},
		{Type: corev1.NodeInternalIP, Address: "fe80::1%" + strings.Repeat("z", 1000)},
	}
	want := []corev1.NodeAddress{{Address: "10.0.0.5"}, {Address: "2a00::5"}}
	o, err := LeanNode(full)
	if err != nil {
		t.Fatal(err)
	}
	lean := o.(*corev1.Node)
	if diff := cmp.Diff(want, lean.Status.Addresses) + cmp.Diff(full.Spec.PodCIDRs, lean.Spec.PodCIDRs); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
	for i := range 1000 {
		full.Status.Addresses = append(full.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.1.%d.%d", i/256, i%256)})
	}
	if o, err = LeanNode(full); err != nil {
		t.Fatal(err)
	}
	if n := len(o.(*corev1.Node).Status.Addresses); n != maxAddresses {
		t.Errorf("%d addresses are kept, want %d", n, maxAddresses)
	}
}

func TestLeanNodeKeepsWhatAChoiceNeeds(t *testing.T) {
	for name, change := range map[string]func(*corev1.Node){
		"ready":              func(*corev1.Node) {},
		"cordoned":           func(n *corev1.Node) { n.Spec.Unschedulable = true },
		"with a providerID":  func(n *corev1.Node) { n.Spec.ProviderID = "openstack:///1" },
		"with a system UUID": func(n *corev1.Node) { n.Status.NodeInfo.SystemUUID = "6F0F2C1E-4F0E-5D0A-9A57-0C6F0A1F7B11" },
		"being deleted":      func(n *corev1.Node) { n.DeletionTimestamp = &metav1.Time{Time: noon} },
		"unknown":            func(n *corev1.Node) { n.Status.Conditions[1].Status = corev1.ConditionUnknown },
		"without conditions": func(n *corev1.Node) { n.Status.Conditions = nil },
	} {
		t.Run(name, func(t *testing.T) {
			full := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "u", ResourceVersion: "7", Labels: map[string]string{"a": "b"}}}
			full.Status.Conditions = []corev1.NodeCondition{
				{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue},
				{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Time{Time: noon}},
			}
			full.Status.Images = []corev1.ContainerImage{{Names: []string{"large"}}}
			change(full)
			o, err := LeanNode(full)
			if err != nil {
				t.Fatal(err)
			}
			lean := o.(*corev1.Node)
			if nodeOf(lean) != nodeOf(full) || lean.ResourceVersion != "7" || lean.UID != "u" {
				t.Errorf("got %+v, want the same node as %+v", lean, full)
			}
			if len(lean.Labels)+len(lean.Status.Images) != 0 {
				t.Errorf("got %+v, want nothing else", lean)
			}
		})
	}
}
