package testkit

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/privatecloud/operator/api/v1alpha1"
)

const (
	// PollInterval is what Cloud sets: the shortest that a Cloud may have.
	PollInterval = time.Second
	// SettleTime is what Cloud sets.
	SettleTime = 2 * time.Second
)

// VM returns a VM whose vmname is its object's name.
func VM(namespace, name string, change ...func(*v1alpha1.VM)) *v1alpha1.VM {
	vm := &v1alpha1.VM{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.VMSpec{VMName: name},
	}
	for _, apply := range change {
		apply(vm)
	}
	return vm
}

// Cloud returns a Cloud that is polled as often, and settles as fast, as tests like it.
func Cloud(name, endpoint string, change ...func(*v1alpha1.Cloud)) *v1alpha1.Cloud {
	cloud := &v1alpha1.Cloud{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.CloudSpec{
			Endpoint:     endpoint,
			PollInterval: metav1.Duration{Duration: PollInterval},
			SettleTime:   &metav1.Duration{Duration: SettleTime},
		},
	}
	for _, apply := range change {
		apply(cloud)
	}
	return cloud
}

// Network returns a Network of the range 192.168.0.0/16.
func Network(namespace, name string, change ...func(*v1alpha1.Network)) *v1alpha1.Network {
	net := &v1alpha1.Network{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.NetworkSpec{CIDR: "192.168.0.0/16", Gateway: "192.168.0.1"},
	}
	for _, apply := range change {
		apply(net)
	}
	return net
}
