package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// hostileVMs is how many VMs are created at a time on a hostile cloud: as many as the
// manager reconciles concurrently.
const hostileVMs = 16

// hostile is a cloud beside that of a world, whose managers see both.
type hostile struct {
	*testkit.CloudServer
	world *world
	core  bool
	// name is that of its Cloud.
	name string
}

// openHostile starts a cloud and creates its Cloud. There is no proxy in between:
// answers do not fit into memory.
func (w *world) openHostile(ctx context.Context, p profile) (*hostile, error) {
	h := &hostile{world: w, core: p.mock.Profile == mockcloud.Core, name: w.name + "-hostile"}
	p.mock.CallLog = 10_000
	spec := pcapi.CloudSpec{REST: p.rest, Imports: pcapi.ImportPolicyAny}
	if p.mock.Username != "" {
		spec.CredentialsSecretRef, spec.InsecureAllowHTTP = &pcapi.SecretReference{Name: h.name}, true
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: w.name, Name: h.name, Labels: map[string]string{pcapi.CredentialsForLabel: h.name},
		}, StringData: map[string]string{"username": p.mock.Username, "password": p.mock.Password}}
		if err := w.env.client.Create(ctx, secret); err != nil {
			return nil, err
		}
	}
	var err error
	if h.CloudServer, err = testkit.ServeCloud(p.mock); err != nil {
		return nil, err
	}
	if err := w.createCloud(ctx, h.name, h.URL, spec); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

// turn makes the cloud hostile.
func (h *hostile) turn(ctx context.Context, c hostileCase) error {
	var system corev1.Namespace
	if err := h.world.env.client.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, &system); err != nil {
		return err
	}
	quirks, err := mockcloud.ParseQuirks(c.quirks)
	if err != nil {
		return err
	}
	if err := h.SetQuirks(quirks); err != nil {
		return err
	}
	for _, f := range c.faults {
		if f.Repeat != nil {
			body := *f.Repeat
			body.Part = strings.ReplaceAll(body.Part, "{cluster}", string(system.UID))
			f.Repeat = &body
		}
		if _, err := h.AddFault(f); err != nil {
			return err
		}
	}
	h.ResetCalls()
	h.ExpireSessions()
	return nil
}

// read returns the Cloud.
func (h *hostile) read(ctx context.Context) (*pcapi.Cloud, error) {
	c := &pcapi.Cloud{}
	return c, h.world.env.client.Get(ctx, client.ObjectKey{Name: h.name}, c)
}

// patch merges a patch into an object of the hostile cloud.
func (h *hostile) patch(ctx context.Context, object client.Object, patch string) error {
	return h.world.env.client.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(patch)))
}

// poll enqueues the Cloud, which is listed if that is due.
func (h *hostile) poll(ctx context.Context) error {
	c, err := h.read(ctx)
	if err != nil {
		return err
	}
	return h.patch(ctx, c, fmt.Sprintf(`{"metadata":{"annotations":{"example.com/touched":%q}}}`, c.ResourceVersion))
}

// notAsked returns the calls that got no hostile answer yet.
func (h *hostile) notAsked(calls []string) []string {
	missing := slices.Clone(calls)
	for _, call := range h.Calls() {
		if len(call.Faults) > 0 {
			missing = slices.DeleteFunc(missing, func(want string) bool { return want == call.Method+" "+call.Route })
		}
	}
	return missing
}

func (h *hostile) vm(name string, change ...func(*pcapi.VM)) *pcapi.VM {
	return testkit.VM(h.world.name, name, append(change, func(vm *pcapi.VM) { vm.Spec.CloudRef = &pcapi.CloudReference{Name: h.name} })...)
}

func (h *hostile) network(name string) *pcapi.Network {
	return testkit.Network(h.world.name, name, func(n *pcapi.Network) { n.Spec.CloudRef = &pcapi.CloudReference{Name: h.name} })
}

// prepare creates what use changes and deletes.
func (h *hostile) prepare(ctx context.Context) error {
	_, err := h.PutServer(mockcloud.Server{ID: "imported", Name: "imported"})
	objects := []client.Object{h.vm("hostile-edited"), h.vm("hostile-removed")}
	if !h.core {
		objects = append(objects, h.network("hostile-edited"), h.network("hostile-removed"))
	}
	errs := []error{err}
	for _, object := range objects {
		errs = append(errs, h.world.env.client.Create(ctx, object))
	}
	return errors.Join(errs...)
}

// prepared returns an error until all that prepare creates is Ready.
func (h *hostile) prepared(ctx context.Context) error {
	var vms pcapi.VMList
	var networks pcapi.NetworkList
	here := client.InNamespace(h.world.name)
	errs := []error{h.world.env.client.List(ctx, &vms, here), h.world.env.client.List(ctx, &networks, here)}
	for i := range vms.Items {
		if !meta.IsStatusConditionTrue(vms.Items[i].Status.Conditions, pcapi.ReadyCondition) {
			errs = append(errs, fmt.Errorf("VM %s: %s", vms.Items[i].Name, describe(&vms.Items[i])))
		}
	}
	for i := range networks.Items {
		if !networkReady(&networks.Items[i]) {
			errs = append(errs, fmt.Errorf("Network %s: %+v", networks.Items[i].Name, networks.Items[i].Status))
		}
	}
	return errors.Join(errs...)
}

// use causes all kinds of calls: it creates objects, and changes and deletes those of
// prepare.
func (h *hostile) use(ctx context.Context) error {
	do := h.world.env.client
	imported := h.vm("hostile-imported", func(vm *pcapi.VM) { vm.Spec.Import = &pcapi.VMImport{VMID: "imported"} })
	errs := []error{do.Create(ctx, imported), do.Delete(ctx, h.vm("hostile-removed"))}
	for i := range hostileVMs {
		errs = append(errs, do.Create(ctx, h.vm(fmt.Sprintf("hostile-%d", i))))
	}
	if h.core {
		return errors.Join(errs...)
	}
	gpu := &pcapi.GPUInfo{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.world.name, Name: "hostile"},
		Spec:       pcapi.GPUInfoSpec{DesAccTime: 1, CloudRef: &pcapi.CloudReference{Name: h.name}},
	}
	c, err := h.read(ctx)
	return errors.Join(append(errs, err,
		h.patch(ctx, h.vm("hostile-edited"), `{"spec":{"cpu":2}}`),
		h.patch(ctx, h.network("hostile-edited"), `{"spec":{"gateway":"192.168.0.2"}}`),
		do.Delete(ctx, h.network("hostile-removed")), do.Create(ctx, h.network("hostile-new")), do.Create(ctx, gpu),
		// Another limit needs another client, which asks for the capabilities.
		h.patch(ctx, c, `{"spec":{"limits":{"burst":99}}}`),
	)...)
}
