package faults

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/mockcloud"
)

const userDataSecret = "user-data"

// createConfigured creates a VM with a class and with user data.
func createConfigured(ctx context.Context, w *world) error {
	err := errors.Join(
		w.env.client.Create(ctx, w.class(2)),
		w.env.client.Create(ctx, w.userData("#cloud-config\npassword: first\n")),
	)
	if err != nil {
		return err
	}
	return create(vm, func(vm *pcapi.VM) {
		vm.Spec.CPU, vm.Spec.Memory, vm.Spec.ClassName = nil, nil, w.name
		vm.Spec.Bootstrap = &pcapi.VMBootstrap{CloudInit: pcapi.VMCloudInit{UserDataSecretRef: &pcapi.SecretKeyReference{Name: userDataSecret}}}
	})(ctx, w)
}

// replaceConfiguration creates the class anew with another size, and changes the user data.
func replaceConfiguration(ctx context.Context, w *world) error {
	return errors.Join(
		w.env.client.Delete(ctx, w.class(2)),
		w.env.client.Create(ctx, w.class(8)),
		w.env.client.Update(ctx, w.userData("#cloud-config\npassword: second\n")),
	)
}

// createInClass creates a VM with a class, and a larger class.
func createInClass(ctx context.Context, w *world) error {
	if err := errors.Join(w.env.client.Create(ctx, w.class(2)), w.env.client.Create(ctx, w.largeClass())); err != nil {
		return err
	}
	return create(vm, func(vm *pcapi.VM) { vm.Spec.CPU, vm.Spec.Memory, vm.Spec.ClassName = nil, nil, w.name })(ctx, w)
}

// moveToLargeClass gives the VM the larger class.
func moveToLargeClass(ctx context.Context, w *world) error {
	return edit(vm, fmt.Sprintf(`{"spec":{"className":%q}}`, w.largeClass().Name))(ctx, w)
}

func (w *world) largeClass() *pcapi.VMClass {
	large := w.class(8)
	large.Name += "-large"
	large.Spec.Hardware.Memory = *pcapi.GiB(16)
	return large
}

func (w *world) class(cpu int32) *pcapi.VMClass {
	return &pcapi.VMClass{
		ObjectMeta: metav1.ObjectMeta{Name: w.name, Labels: map[string]string{worldLabel: w.name}},
		Spec:       pcapi.VMClassSpec{Hardware: pcapi.VMClassHardware{CPU: *pcapi.Cores(cpu), Memory: *pcapi.GiB(4)}},
	}
}

func (w *world) userData(text string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.name, Name: userDataSecret, Labels: map[string]string{pcapi.UserDataLabel: "true"}},
		Data:       map[string][]byte{"user-data": []byte(text)},
	}
}

// classViolations compares the size of a server with the class that its VM has taken, and
// that class with the spec.
func classViolations(vm *pcapi.VM, server mockcloud.Server) []string {
	class := vm.Status.Class
	if class != nil && class.Name != vm.Spec.ClassName {
		return []string{fmt.Sprintf("VM %s has taken class %s, and its spec says className %s", vm.Name, class.Name, vm.Spec.ClassName)}
	}
	if class == nil || server.CPU == class.Hardware.CPU.Count() && server.Memory<<10 == class.Hardware.Memory.MiB() {
		return nil
	}
	return []string{fmt.Sprintf("server %s has %d cores and %d GiB, its VM has taken the class %+v", server.Name, server.CPU, server.Memory, *class)}
}
