package vm

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// decodedVM returns a VM as the cache gets it: decoded, with texts of its own.
func decodedVM(tb testing.TB, n int) *pcapi.VM {
	tb.Helper()
	name := fmt.Sprintf("vm-%05d", n)
	condition := func(of, reason, message string) string {
		return fmt.Sprintf(`{"type":%q,"status":"True","observedGeneration":1,"lastTransitionTime":"2026-01-02T03:04:05Z","reason":%q,"message":%q}`, of, reason, message)
	}
	text := fmt.Sprintf(`{"apiVersion":"samplecontroller.k8s.io/v1alpha1","kind":"VM","metadata":{"name":%[1]q,"generateName":"vm-","namespace":"team-a",
		"uid":"9c0d7d3e-0000-4000-8000-%012[2]d","resourceVersion":"1%05[2]d","generation":1,"creationTimestamp":"2026-01-02T03:04:05Z","labels":{"app":"web"},
		"annotations":{"samplecontroller.k8s.io/claimed-name":%[1]q,"samplecontroller.k8s.io/claimed-cloud":"default"},"finalizers":["samplecontroller.k8s.io/vm"],
		"ownerReferences":[{"apiVersion":"samplecontroller.k8s.io/v1alpha1","kind":"VmGroup","name":"web","uid":"9c0d7d3e-0000-4000-8000-000000000000","controller":true}],
		"managedFields":[{"manager":"manager","operation":"Update","apiVersion":"samplecontroller.k8s.io/v1alpha1"}]},
		"spec":{"vmname":%[1]q,"cloudRef":{"name":"default"},"network":{"interfaces":[{"name":"eth0","networkRef":{"name":"net"}}]},"cpu":2,"memory":4,"template":"small","folder":"team-a","powerState":"On",
		"deletionPolicy":"Delete","managementPolicy":"Managed","updatePolicy":"NoRestart"},
		"status":{"vmId":"6b1f4a52-0000-4000-8000-%012[2]d","cpuUtilization":37,"state":"Running","host":"host-1","image":{"name":"small"},"createdTime":"2026-01-02T03:04:05Z","nameInCloud":%[1]q,
		"cloud":"default","observedGeneration":1,"conditions":[%[3]s,%[4]s,%[5]s,%[6]s,%[7]s]}}`, name, n,
		condition(pcapi.NameCheckedCondition, "Available", fmt.Sprintf("the cloud lets '%s' be used", name)), condition(pcapi.CreatedCondition, "Created", "the server exists"),
		condition(pcapi.DeletingCondition, "NotDeleting", "the object exists"), condition(pcapi.ReadyCondition, "Running", "VM is as the spec says"),
		condition("Reconciling", "Running", "nothing is to be done"))
	var vm pcapi.VM
	if err := json.Unmarshal([]byte(text), &vm); err != nil {
		tb.Fatal(err)
	}
	return &vm
}

func TestLeanVMDropsManagedFieldsAlone(t *testing.T) {
	want, got := decodedVM(t, 7), decodedVM(t, 7)
	if _, err := LeanVM(got); err != nil {
		t.Fatal(err)
	}
	want.ManagedFields = nil
	equal(t, "VM", want, got)
}

func TestLeanVMLetsVMsShareTexts(t *testing.T) {
	a, b := decodedVM(t, 1), decodedVM(t, 2)
	for _, vm := range []*pcapi.VM{a, b} {
		if _, err := LeanVM(vm); err != nil {
			t.Fatal(err)
		}
	}
	keyOf := func(vm *pcapi.VM) string {
		for key := range vm.Labels {
			return key
		}
		return ""
	}
	for what, pair := range map[string][2]string{
		"namespace":           {a.Namespace, b.Namespace},
		"finalizer":           {a.Finalizers[0], b.Finalizers[0]},
		"name of the group":   {a.OwnerReferences[0].Name, b.OwnerReferences[0].Name},
		"key of a label":      {keyOf(a), keyOf(b)},
		"name of a Network":   {a.Spec.Network.Interfaces[0].NetworkRef.Name, b.Spec.Network.Interfaces[0].NetworkRef.Name},
		"name of the Cloud":   {a.Spec.CloudRef.Name, b.Spec.CloudRef.Name},
		"type of a condition": {a.Status.Conditions[1].Type, b.Status.Conditions[1].Type},
		"message":             {a.Status.Conditions[1].Message, b.Status.Conditions[1].Message},
	} {
		if pair[0] == "" || unsafe.StringData(pair[0]) != unsafe.StringData(pair[1]) {
			t.Errorf("%s: %q and %q are not one text in memory", what, pair[0], pair[1])
		}
	}
}

// The cache may pass an object that it has already, which others read.
func TestLeanVMDoesNotChangeAVMThatIsLean(t *testing.T) {
	vm := decodedVM(t, 1)
	vm.ManagedFields = nil
	before := unsafe.StringData(vm.Namespace)
	if _, err := LeanVM(vm); err != nil {
		t.Fatal(err)
	}
	if unsafe.StringData(vm.Namespace) != before {
		t.Error("the VM was changed, want it untouched")
	}
}

func TestLeanVMKeepsOtherObjects(t *testing.T) {
	cloud := &pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: "default", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}}}
	got, err := LeanVM(cloud)
	if err != nil || got != any(cloud) || len(cloud.ManagedFields) != 1 {
		t.Errorf("got %v, %v, want the same object", got, err)
	}
}

// ownTexts are the texts of the spec that VMs do not share: most differ, or few VMs have them.
var ownTexts = []string{
	"VMName", "CPU.StrVal", "Memory.StrVal", "Zone", "AntiAffinity.Group", "AntiAffinity.Policy", "Network.Interfaces.Addresses",
	"Bootstrap.CloudInit.UserDataSecretRef.Name", "Bootstrap.CloudInit.UserDataSecretRef.Key", "Bootstrap.CloudInit.SSHAuthorizedKeys",
	"Disks.Size", "PowerOffMode", "CurrentSnapshotName", "Approval", "Import.VMID",
}

// A text that is added to the spec is shared, or listed as one that is not.
func TestLeanVMLetsVMsShareEachTextOfTheSpec(t *testing.T) {
	first, second := map[string]*byte{}, map[string]*byte{}
	for _, found := range []map[string]*byte{first, second} {
		vm := &pcapi.VM{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{}}}
		walkTexts(reflect.ValueOf(&vm.Spec).Elem(), "", func(path string, text reflect.Value) { text.SetString(strings.Clone(path)) })
		if _, err := LeanVM(vm); err != nil {
			t.Fatal(err)
		}
		walkTexts(reflect.ValueOf(&vm.Spec).Elem(), "", func(path string, text reflect.Value) { found[path] = unsafe.StringData(text.String()) })
	}
	var own []string
	for path, text := range first {
		if second[path] != text {
			own = append(own, path)
		}
	}
	slices.Sort(own)
	equal(t, "texts that two VMs do not share", slices.Sorted(slices.Values(ownTexts)), own)
}

// walkTexts visits each text below a value, which gets one item in each list and map that is empty.
func walkTexts(v reflect.Value, path string, visit func(path string, text reflect.Value)) {
	switch v.Kind() {
	case reflect.String:
		visit(path, v)
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		walkTexts(v.Elem(), path, visit)
	case reflect.Slice:
		if v.Len() == 0 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		}
		walkTexts(v.Index(0), path, visit)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		for entries := v.MapRange(); entries.Next(); {
			key.Set(entries.Key())
			value.Set(entries.Value())
		}
		visit(path+".key", key)
		walkTexts(value, path, visit)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[metav1.Time]() {
			return
		}
		for field, value := range v.Fields() {
			walkTexts(value, strings.TrimPrefix(path+"."+field.Name, "."), visit)
		}
	default: // Values of other kinds have no text.
	}
}
