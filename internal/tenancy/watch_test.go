package tenancy

import (
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

func TestAccessChanged(t *testing.T) {
	t.Parallel()
	open := &pcapi.Cloud{}
	restricted := open.DeepCopy()
	restricted.Spec.AllowedNamespaces = &metav1.LabelSelector{MatchLabels: map[string]string{"cloud": "yes"}}
	observed := open.DeepCopy()
	observed.Status.ObservedGeneration = 2
	closing := open.DeepCopy()
	closing.DeletionTimestamp = new(metav1.Now())
	importing := open.DeepCopy()
	importing.Spec.Imports = pcapi.ImportPolicyListed
	listing := importing.DeepCopy()
	listing.Spec.Importable = []pcapi.ImportableVM{{VMID: "id", Namespace: "team-a"}}
	sharing := importing.DeepCopy()
	sharing.Spec.ImportableNetworks = []pcapi.ImportableNetwork{{Name: "VM Network", Namespace: "team-a"}}
	restricting := importing.DeepCopy()
	restricting.Spec.NetworkImports = pcapi.ImportPolicyNone
	flavors := func(selectable ...string) *pcapi.Cloud {
		return &pcapi.Cloud{Spec: pcapi.CloudSpec{OpenStack: &pcapi.OpenStackCloud{Flavors: pcapi.OpenStackFlavors{Selectable: selectable}}}}
	}
	update := func(before, after *pcapi.Cloud) bool {
		return accessChanged.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})
	}
	for name, tc := range map[string]struct{ got, want bool }{
		"Cloud in the initial list: not selected": {accessChanged.Create(event.CreateEvent{Object: open, IsInInitialList: true}), false},
		"created Cloud: selected":                 {accessChanged.Create(event.CreateEvent{Object: open}), true},
		"deleted Cloud: selected":                 {accessChanged.Delete(event.DeleteEvent{Object: open}), true},
		"allowedNamespaces changed: selected":     {accessChanged.Update(event.UpdateEvent{ObjectOld: open, ObjectNew: restricted}), true},
		"status changed: not selected":            {accessChanged.Update(event.UpdateEvent{ObjectOld: open, ObjectNew: observed}), false},
		"deletion requested: selected":            {update(open, closing), true},
		"deletion goes on: not selected":          {update(closing, closing.DeepCopy()), false},
		"imports changed: selected":               {update(open, importing), true},
		"importable changed: selected":            {update(importing, listing), true},
		"importableNetworks changed: selected":    {update(importing, sharing), true},
		"allowed flavors changed: selected":       {update(flavors("m1.*"), flavors("m1.*", "g1")), true},
		"other flavors changed: not selected":     {update(open, flavors()), false},
		"networkImports changed: selected":        {update(importing, restricting), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.got != tc.want {
				t.Errorf("selected: %v, want %v", tc.got, tc.want)
			}
		})
	}
}

// Each field of the spec either decides about access, and a change of it is selected, or it does not. A new field
// has to be put into one of the lists.
func TestAccessChangedKnowsEveryFieldOfTheSpec(t *testing.T) {
	t.Parallel()
	access := map[string]func(*pcapi.CloudSpec){
		"AllowedNamespaces": func(s *pcapi.CloudSpec) { s.AllowedNamespaces = &metav1.LabelSelector{} },
		"Imports":           func(s *pcapi.CloudSpec) { s.Imports = pcapi.ImportPolicyAny },
		"Importable":        func(s *pcapi.CloudSpec) { s.Importable = []pcapi.ImportableVM{{}} },
		"NetworkImports":    func(s *pcapi.CloudSpec) { s.NetworkImports = pcapi.ImportPolicyAny },
		"ImportableNetworks": func(s *pcapi.CloudSpec) {
			s.ImportableNetworks = []pcapi.ImportableNetwork{{}}
		},
	}
	other := map[string]func(*pcapi.CloudSpec){
		"Type":                  func(s *pcapi.CloudSpec) { s.Type = pcapi.CloudTypeREST },
		"Endpoint":              func(s *pcapi.CloudSpec) { s.Endpoint = "https://cloud.example.com" },
		"CredentialsSecretRef":  func(s *pcapi.CloudSpec) { s.CredentialsSecretRef = &pcapi.SecretReference{} },
		"InsecureAllowHTTP":     func(s *pcapi.CloudSpec) { s.InsecureAllowHTTP = true },
		"InsecureSkipTLSVerify": func(s *pcapi.CloudSpec) { s.InsecureSkipTLSVerify = true },
		"PollInterval":          func(s *pcapi.CloudSpec) { s.PollInterval.Duration = 1 },
		"SettleTime":            func(s *pcapi.CloudSpec) { s.SettleTime = &metav1.Duration{} },
		"Limits":                func(s *pcapi.CloudSpec) { s.Limits.Burst = 1 },
		"UtilizationStep":       func(s *pcapi.CloudSpec) { s.UtilizationStep = 1 },
		"OrphanPolicy":          func(s *pcapi.CloudSpec) { s.OrphanPolicy = pcapi.OrphanPolicyDelete },
		"REST":                  func(s *pcapi.CloudSpec) { s.REST = &pcapi.RESTCloud{} },
		"VSphere":               func(s *pcapi.CloudSpec) { s.VSphere = &pcapi.VSphereCloud{} },
		"OpenStack":             func(s *pcapi.CloudSpec) { s.OpenStack = &pcapi.OpenStackCloud{} },
	}
	for field := range reflect.TypeFor[pcapi.CloudSpec]().Fields() {
		change, decides := access[field.Name]
		if !decides {
			change = other[field.Name]
		}
		if change == nil {
			t.Errorf("spec.%s is new: does it decide which namespaces may use the Cloud or what they may import?", field.Name)
			continue
		}
		before, after := &pcapi.Cloud{}, &pcapi.Cloud{}
		change(&after.Spec)
		if equal := reflect.DeepEqual(reflect.ValueOf(before.Spec).FieldByIndex(field.Index).Interface(), reflect.ValueOf(after.Spec).FieldByIndex(field.Index).Interface()); equal {
			t.Errorf("spec.%s was not changed", field.Name)
		}
		if got := accessChanged.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != decides {
			t.Errorf("a change of spec.%s is selected: %t, want %t", field.Name, got, decides)
		}
	}
}
