package vm

import (
	"testing"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/inventory"
)

func TestUndoneIsWhatAnUpdateDidNotMake(t *testing.T) {
	tagged := withTags("a", "1", "b", "1")
	hasTags := func(tags map[string]string) func(*cloud.Server) {
		return func(s *cloud.Server) {
			s.Labels = map[string]string{}
			inventory.WithTags(s.Labels, tags)
		}
	}
	list := cloud.SetLabel{Key: inventory.TagsLabel, Value: "a,b"}
	a, b := cloud.SetLabel{Key: "a", Value: "1"}, cloud.SetLabel{Key: "b", Value: "1"}
	data, logs := cloud.SetDisk{Name: "data", SizeMiB: 2 << 10}, cloud.SetDisk{Name: "logs", SizeMiB: 1 << 10}
	keepData, dropLogs := cloud.SetDiskKeep{Name: "data", Keep: true}, cloud.SetDiskKeep{Name: "logs"}
	on, off := cloud.SetPower{State: cloud.PowerOn}, cloud.SetPower{State: cloud.PowerOff}
	for name, tc := range map[string]struct {
		vm     *pcapi.VM
		update cloud.Update
		server cloud.Server
		want   cloud.Update
	}{
		"all is made":                          {vmWith(), cloud.Update{cloud.SetCPU(2)}, serverWith(), cloud.Update{}},
		"the size is not made":                 {vmWith(), cloud.Update{cloud.SetCPU(2)}, serverWith(withCores(1)), cloud.Update{cloud.SetCPU(2)}},
		"a size that was not asked for":        {vmWith(), cloud.Update{off}, serverWith(withCores(1)), cloud.Update{}},
		"a label is lost for another":          {vmWith(tagged), cloud.Update{a}, serverWith(hasTags(map[string]string{"a": "1"})), cloud.Update{b, list}},
		"labels are not asked for":             {vmWith(tagged), cloud.Update{cloud.SetCPU(2)}, serverWith(hasTags(map[string]string{"a": "1"})), cloud.Update{}},
		"a disk is lost for another":           {vmWith(twoDisks()), cloud.Update{data}, serverWith(hasDisks("data=2048")), cloud.Update{logs}},
		"a kept disk is lost for another":      {vmWith(keptDisks), cloud.Update{keepData}, serverWith(hasDisks("data=2048==keep logs=1024==keep")), cloud.Update{dropLogs}},
		"the power state is not made":          {vmWith(), cloud.Update{on}, serverWith(inState(cloud.StateStopped)), cloud.Update{on}},
		"another power state is the next step": {vmWith(poweredOff), cloud.Update{on}, serverWith(), cloud.Update{}},
	} {
		t.Run(name, func(t *testing.T) {
			obs := obsWith(allOf())
			obs.Resource = &tc.server
			equal(t, "undone", tc.want, append(cloud.Update{}, undone(tc.vm, obs, tc.update, tc.server)...))
		})
	}
}
