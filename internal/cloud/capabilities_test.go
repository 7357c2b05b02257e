package cloud_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

func TestAttaches(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		has  []cloud.Capability
		want bool
	}{
		"networks that can be created: servers can be created on them": {[]cloud.Capability{cloud.Networks}, true},
		"networks that exist: servers can be created on them":          {[]cloud.Capability{cloud.Labels, cloud.NetworkAttach}, true},
		"no networks: servers cannot be created on any":                {[]cloud.Capability{cloud.Labels}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := cloud.NewCapabilities(test.has...).Attaches(); got != test.want {
				t.Errorf("Attaches: %t, want %t", got, test.want)
			}
		})
	}
}

func TestACloudWithoutCapabilitiesIsNotOneOfUnknownCapabilities(t *testing.T) {
	t.Parallel()
	if cloud.NewCapabilities() == nil {
		t.Error("no capabilities are nil, which says that they are unknown")
	}
}

func TestCreateGuaranteeStatesWhatALostAnswerLeadsTo(t *testing.T) {
	t.Parallel()
	const (
		byKey   = "each VM is created exactly once: the cloud honours idempotency keys"
		byName  = "each VM is created exactly once: the cloud keeps names unique"
		byOwner = "each VM is created exactly once: the cloud keeps names unique, and nobody else uses the names of this cluster"
		person  = "this cloud has neither idempotency keys nor labels: if the answer to a create is lost, at most one VM of the name exists, and a person decides who owns it"
		twice   = "this cloud has neither idempotency keys nor unique names: if the answer to a create is lost, two VMs may exist for a while, and the younger is removed"
		lost    = "this cloud has neither idempotency keys, unique names nor labels: if the answer to a create is lost, a VM may remain that only a person can attribute"
	)
	type guarantee struct {
		Text        string
		ExactlyOnce bool
	}
	for name, test := range map[string]struct {
		has        []cloud.Capability
		identified bool
		want       guarantee
	}{
		"keys: exactly once":                                           {[]cloud.Capability{cloud.Idempotency}, false, guarantee{byKey, true}},
		"keys, unique names and labels: exactly once":                  {[]cloud.Capability{cloud.Idempotency, cloud.UniqueNames, cloud.Labels}, false, guarantee{byKey, true}},
		"unique names and labels: exactly once":                        {[]cloud.Capability{cloud.UniqueNames, cloud.Labels}, false, guarantee{byName, true}},
		"unique names, the owner is known: exactly once":               {[]cloud.Capability{cloud.UniqueNames}, true, guarantee{byName, true}},
		"unique names that are exclusive: exactly once":                {[]cloud.Capability{cloud.UniqueNames, cloud.ExclusiveNames}, false, guarantee{byOwner, true}},
		"unique names that others use too: a person decides":           {[]cloud.Capability{cloud.UniqueNames}, false, guarantee{person, false}},
		"exclusive names that are unique per folder: a person decides": {[]cloud.Capability{cloud.UniqueNames, cloud.ExclusiveNames, cloud.FolderNames}, false, guarantee{person, false}},
		"labels alone: one in the end":                                 {[]cloud.Capability{cloud.Labels}, false, guarantee{twice, false}},
		"nothing, the owner is known: one in the end":                  {nil, true, guarantee{twice, false}},
		"exclusive names that are not unique: may remain":              {[]cloud.Capability{cloud.ExclusiveNames}, false, guarantee{lost, false}},
		"nothing: may remain":                                          {nil, false, guarantee{lost, false}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, once := cloud.NewCapabilities(test.has...).CreateGuarantee("VM", test.identified)
			if diff := cmp.Diff(test.want, guarantee{text, once}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
