package vm

import (
	"maps"
	"testing"
	"time"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/inventory"
)

func withTags(pairs ...string) func(*pcapi.VM) {
	return func(vm *pcapi.VM) {
		vm.Spec.Tags = map[string]pcapi.TagValue{}
		for i := 0; i < len(pairs); i += 2 {
			vm.Spec.Tags[pairs[i]] = pcapi.TagValue(pairs[i+1])
		}
	}
}

// labelled gives a server labels beside those of its owner.
func labelled(pairs ...string) func(*cloud.Server) {
	return func(s *cloud.Server) {
		s.Labels = maps.Clone(s.Labels)
		for i := 0; i < len(pairs); i += 2 {
			s.Labels[pairs[i]] = pairs[i+1]
		}
	}
}

// labelsBeside returns the labels of a server that are not those of its owner, as key=value.
func labelsBeside(s cloud.Server) map[string]string {
	labels := maps.Clone(s.Labels)
	for key := range ownLabels {
		delete(labels, key)
	}
	return labels
}

func pairs(text ...string) map[string]string {
	m := map[string]string{}
	for i := 0; i < len(text); i += 2 {
		m[text[i]] = text[i+1]
	}
	return m
}

func TestTagsArePartOfTheCreate(t *testing.T) {
	h := newHarness(t, everything, vmWith(withTags("env", "prod", "cost-center", "")))
	h.mustReconcile()
	h.wantCalls("check web", "create web")
	equal(t, "labels", pairs("env", "prod", "cost-center", "", inventory.TagsLabel, "cost-center,env"), labelsBeside(h.cloud.Server("s1")))
	h.later(pollInterval)
	h.mustReconcile()
	h.wantCalls()
}

func TestTagsOfAServer(t *testing.T) {
	record := inventory.TagsLabel
	for name, test := range map[string]struct {
		tags  []string
		has   []string
		calls []string
		want  map[string]string
	}{
		"no tags: labels of others stay":                       {has: []string{"env", "test"}, want: pairs("env", "test")},
		"it has them: nothing is sent":                         {tags: []string{"env", "prod"}, has: []string{"env", "prod", record, "env"}, want: pairs("env", "prod", record, "env")},
		"one is added: labels of others stay":                  {tags: []string{"env", "prod"}, has: []string{"rack", "7"}, calls: []string{"update s1"}, want: pairs("env", "prod", "rack", "7", record, "env")},
		"a label of somebody else has its key: it is replaced": {tags: []string{"env", "prod"}, has: []string{"env", "test"}, calls: []string{"update s1"}, want: pairs("env", "prod", record, "env")},
		"one was changed in the cloud: corrected":              {tags: []string{"env", "prod"}, has: []string{"env", "test", record, "env"}, calls: []string{"update s1"}, want: pairs("env", "prod", record, "env")},
		"one was removed in the cloud: corrected":              {tags: []string{"env", "prod"}, has: []string{record, "env"}, calls: []string{"update s1"}, want: pairs("env", "prod", record, "env")},
		"one is removed from the spec: removed":                {tags: []string{"env", "prod"}, has: []string{"env", "prod", "team", "a", record, "env,team"}, calls: []string{"update s1"}, want: pairs("env", "prod", record, "env")},
		"all are removed from the spec: removed":               {has: []string{"env", "prod", "rack", "7", record, "env"}, calls: []string{"update s1"}, want: pairs("rack", "7")},
		"one is removed that the cloud has removed: no mark":   {has: []string{record, "env"}, calls: []string{"update s1"}, want: pairs()},
		"the mark names labels of the owner: they are kept":    {has: []string{record, inventory.UIDLabel}, calls: []string{"update s1"}, want: pairs()},
		"the mark was removed in the cloud: set again":         {tags: []string{"env", "prod"}, has: []string{"env", "prod"}, calls: []string{"update s1"}, want: pairs("env", "prod", record, "env")},
	} {
		t.Run(name, func(t *testing.T) {
			h := harnessWithServer(t, everything, onRecord(withTags(test.tags...)), serverWith(labelled(test.has...)))
			h.mustReconcile()
			h.wantCalls(test.calls...)
			h.wantCondition(pcapi.ReadyCondition, "True Running")
			s := h.cloud.Server("s1")
			equal(t, "labels", test.want, labelsBeside(s))
			equal(t, "owner", "uid-a", s.Labels[inventory.UIDLabel])
			h.later(pollInterval)
			h.mustReconcile()
			h.wantCalls()
		})
	}
}

func TestTagsAreSentAlone(t *testing.T) {
	t.Run("a size that the cloud cannot change: the tags are set, and the VM says what is not", func(t *testing.T) {
		h := harnessWithServer(t, without(cloud.Resize), onRecord(withTags("env", "prod")), serverWith(withCores(1)))
		for range 2 {
			h.mustReconcile()
			h.advance(time.Second)
		}
		h.wantCalls("update s1")
		equal(t, "tag", "prod", h.cloud.Server("s1").Labels["env"])
		h.wantCondition(pcapi.ReadyCondition, "False Unsupported", "this cloud cannot set cpu")
	})
	t.Run("tags that the cloud refuses: all else is changed, the VM says why, and they are sent again later", func(t *testing.T) {
		h := harnessWithServer(t, everything, onRecord(withTags("env", "prod"), poweredOff), serverWith(withCores(1)))
		h.cloud.FailAlways(cloudfake.UpdateServer, &cloud.Error{Kind: cloud.Rejected, Op: "change server s1", Detail: "label env is reserved"}, false)
		h.mustReconcile()
		h.wantCondition(pcapi.ReadyCondition, "False Progressing", "label env is reserved; VM s1 is changed otherwise meanwhile")
		h.cloud.Heal()
		for range 3 {
			h.advance(time.Second)
			h.mustReconcile()
		}
		equal(t, "state", cloud.StateStopped, h.cloud.Server("s1").State)
		equal(t, "cores", 2, h.cloud.Server("s1").CPU)
		equal(t, "tags", pairs(), labelsBeside(h.cloud.Server("s1")))
		h.wantCondition(pcapi.ReadyCondition, "False Rejected", "label env is reserved")
		h.later(controller.RecheckRefused)
		h.mustReconcile()
		h.wantCondition(pcapi.ReadyCondition, "True Stopped")
		equal(t, "tag", "prod", h.cloud.Server("s1").Labels["env"])
	})
	t.Run("tags that the cloud refused are sent again after an edit", func(t *testing.T) {
		h := harnessWithServer(t, everything, onRecord(withTags("env", "prod")), serverWith())
		h.cloud.Fail(cloudfake.UpdateServer, &cloud.Error{Kind: cloud.Rejected, Op: "change server s1", Detail: "label env is reserved"}, false)
		h.mustReconcile()
		h.wantCondition(pcapi.ReadyCondition, "False Rejected", "label env is reserved")
		h.edit(withTags("environment", "prod"))
		h.mustReconcile()
		h.wantCondition(pcapi.ReadyCondition, "True Running")
	})
	t.Run("a suspended server gets tags", func(t *testing.T) {
		h := harnessWithServer(t, withSuspend, onRecord(withTags("env", "prod"), suspended), serverWith(inState(cloud.StateSuspended)))
		h.mustReconcile()
		h.wantCondition(pcapi.ReadyCondition, "True Suspended")
		equal(t, "tag", "prod", h.cloud.Server("s1").Labels["env"])
		equal(t, "state", cloud.StateSuspended, h.cloud.Server("s1").State)
	})
}

func TestCloudWithoutLabelsHasNoTags(t *testing.T) {
	t.Run("a new VM: nothing is sent", func(t *testing.T) {
		h := newHarness(t, without(cloud.Labels), vmWith(withTags("env", "prod")))
		h.mustReconcile()
		h.wantCalls()
		h.wantCondition(pcapi.ReadyCondition, "False Unsupported", "this cloud cannot set tags: remove it from the spec")
	})
	t.Run("a VM that exists: its size is changed all the same", func(t *testing.T) {
		h := harnessWithServer(t, without(cloud.Labels), onRecord(withTags("env", "prod")), serverWith(withCores(1), labelled()))
		h.mustReconcile()
		h.wantCalls("update s1")
		equal(t, "cores", 2, h.cloud.Server("s1").CPU)
		h.mustReconcile()
		h.wantCondition(pcapi.ReadyCondition, "False Unsupported", "this cloud cannot set tags")
	})
	t.Run("a VM that exists on a cloud without any capability: its tags are reported", func(t *testing.T) {
		h := harnessWithServer(t, cloud.NewCapabilities(), onRecord(withTags("env", "prod")), serverWith())
		h.mustReconcile()
		h.wantCalls("status s1")
		h.wantCondition(pcapi.ReadyCondition, "False Unsupported", "this cloud cannot set tags")
	})
}

func TestLostAnswerToTagsIsSettledByTheNextListing(t *testing.T) {
	for name, applied := range map[string]bool{"the cloud has set them": true, "the cloud has not set them": false} {
		t.Run(name, func(t *testing.T) {
			h := harnessWithServer(t, everything, onRecord(withTags("env", "prod")), serverWith())
			h.cloud.Fail(cloudfake.UpdateServer, &cloud.Error{Kind: cloud.Unavailable, Op: "update", Uncertain: true}, applied)
			h.mustReconcile()
			for range 3 {
				h.later(pollInterval)
				h.mustReconcile()
			}
			h.wantCondition(pcapi.ReadyCondition, "True Running")
			equal(t, "labels", pairs("env", "prod", inventory.TagsLabel, "env"), labelsBeside(h.cloud.Server("s1")))
		})
	}
}

func TestReleasedServerKeepsItsTagsAsLabels(t *testing.T) {
	h := harnessWithServer(t, everything, onRecord(withTags("env", "prod"), orphaning, deleted), serverWith(labelled("env", "prod", inventory.TagsLabel, "env")))
	h.mustReconcile()
	equal(t, "labels", pairs("env", "prod"), h.cloud.Server("s1").Labels)
}

func TestObservedServerGetsNoTags(t *testing.T) {
	h := harnessWithServer(t, everything, onRecord(withTags("env", "prod"), observing), serverWith())
	h.mustReconcile()
	h.wantCalls()
}

func TestTagsThatTheCloudIgnoresAreSentAgainWithBackOff(t *testing.T) {
	h := harnessWithServer(t, everything, onRecord(withTags("env", "prod")), serverWith(withCores(1)))
	h.cloud.Ignore(cloudfake.UpdateServer)
	h.mustReconcile()
	h.wantCalls("update s1")
	h.cloud.Heal()
	h.advance(time.Second)
	h.mustReconcile()
	h.wantCalls("update s1")
	equal(t, "cores", 2, h.cloud.Server("s1").CPU)
	equal(t, "tags", pairs(), labelsBeside(h.cloud.Server("s1")))
	h.wantCondition(pcapi.ReadyCondition, "False Progressing", "does not show it: it is sent again")
	h.later(pollInterval)
	h.mustReconcile()
	h.wantCalls("update s1")
	h.wantCondition(pcapi.ReadyCondition, "True Running")
}
