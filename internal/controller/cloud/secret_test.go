package cloud

import (
	"slices"
	"testing"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

func TestCloudThatIsDeletedWithItsSecretIsUsedUntilItsUsersAreGone(t *testing.T) {
	for name, secretFirst := range map[string]bool{"the Secret first": true, "the Cloud first": false} {
		t.Run(name, func(t *testing.T) {
			user := vm("v")
			w := newWorld(t, home(withSecret), newCloud(nil), login("old"), user)
			w.reconcile()
			steps := []func(){
				func() {
					if err := w.client.Delete(t.Context(), login("old")); err != nil {
						t.Fatal(err)
					}
				},
				func() {
					if err := w.client.Delete(t.Context(), home()); err != nil {
						t.Fatal(err)
					}
				},
			}
			if !secretFirst {
				slices.Reverse(steps)
			}
			steps[0]()
			w.later()
			if secretFirst {
				w.wantCondition(pcapi.ReadyCondition, "False SecretMissing")
				if w.inv.View().Unavailable == "" {
					t.Error("a Cloud that stays is used without its Secret")
				}
				wantClosed(t, w.cloud)
				w.cloud = newCloud(nil)
			}
			steps[1]()
			w.later()
			w.wantCondition(pcapi.ReadyCondition, "False InUse", "VMSnapshots that refer to this Cloud: 1", `Secret "login" does not exist any more`)
			equal(t, "unavailable", "", w.inv.View().Unavailable)
			if err := w.client.Delete(t.Context(), user); err != nil {
				t.Fatal(err)
			}
			w.reconcile()
			if _, there := w.find(); there {
				t.Error("the Cloud is still there after its last user")
			}
		})
	}
}

func TestDeletedCloudSaysAfterARestartThatItsSecretIsNeeded(t *testing.T) {
	w := newWorld(t, home(withSecret), newCloud(nil), login("old"), vm("v"))
	w.reconcile()
	for _, err := range []error{w.client.Delete(t.Context(), home()), w.client.Delete(t.Context(), login("old"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	w.start()
	w.events = nil
	w.reconcile()
	w.wantCondition(pcapi.ReadyCondition, "False SecretMissing", `Secret "login" does not exist in namespace "operator": create it with`,
		"with the label "+pcapi.CredentialsForLabel+"=home", "needed to delete the VMs, Networks and VMSnapshots that refer to this Cloud (1)")
	w.wantCondition(pcapi.InUseCondition, "True InUse", "VMs: 1")
	equal(t, "unavailable", "its credentials are missing: its administrator has to create their Secret", w.inv.View().Unavailable)
	equal(t, "events", []string{"Warning SecretMissing Ready"}, w.events)

	if err := w.client.Create(t.Context(), login("old")); err != nil {
		t.Fatal(err)
	}
	w.later()
	w.wantCondition(pcapi.ReadyCondition, "False InUse")
	equal(t, "unavailable", "", w.inv.View().Unavailable)
}
