package testkit

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

const (
	// PollInterval is the poll interval that Cloud sets: the shortest that the API allows.
	PollInterval = time.Second
	// SettleTime is the settle time that Cloud sets.
	SettleTime = 2 * time.Second
)

// VM returns a VM whose spec.vmname is the name of the object.
func VM(namespace, name string, change ...func(*pcapi.VM)) *pcapi.VM {
	vm := &pcapi.VM{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       pcapi.VMSpec{VMName: name},
	}
	for _, apply := range change {
		apply(vm)
	}
	return vm
}

// Cloud returns a Cloud with a short poll interval and a short settle time.
func Cloud(name, endpoint string, change ...func(*pcapi.Cloud)) *pcapi.Cloud {
	cloud := &pcapi.Cloud{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: pcapi.CloudSpec{
			Endpoint:     endpoint,
			PollInterval: metav1.Duration{Duration: PollInterval},
			SettleTime:   &metav1.Duration{Duration: SettleTime},
			Imports:      pcapi.ImportPolicyAny,
			REST:         &pcapi.RESTCloud{ExclusiveNames: true},
		},
	}
	for _, apply := range change {
		apply(cloud)
	}
	return cloud
}

// Network returns a Network of the range 192.168.0.0/16.
func Network(namespace, name string, change ...func(*pcapi.Network)) *pcapi.Network {
	net := &pcapi.Network{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       pcapi.NetworkSpec{CIDR: "192.168.0.0/16", Gateway: "192.168.0.1"},
	}
	for _, apply := range change {
		apply(net)
	}
	return net
}

// VmGroup returns a VmGroup whose fields are all left to their defaults.
func VmGroup(namespace, name string, change ...func(*pcapi.VmGroup)) *pcapi.VmGroup {
	group := &pcapi.VmGroup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	for _, apply := range change {
		apply(group)
	}
	return group
}

// Namespace returns a Namespace with a generated name.
func Namespace(prefix string, labels map[string]string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix, Labels: labels}}
}
