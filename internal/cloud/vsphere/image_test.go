package vsphere_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/vsphere/vcsim"
)

func TestImageIsTheTemplateThatTheCloneRecorded(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	for name, req := range map[string]cloud.CreateServer{
		"by its name": {Name: "named", Template: vcsim.Template, IdempotencyKey: someKey},
		"by default":  {Name: "default"},
	} {
		created := create(t, c, req)
		listed, err := c.GetServer(t.Context(), created.ID)
		if diff := cmp.Diff(cloud.Image{Name: vcsim.Template}, listed.Image); err != nil || diff != "" {
			t.Errorf("%s: %v, image (-want +got):\n%s", name, err, diff)
		}
	}
}
