package cloud_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

func TestNewDisksKeepsWhatHasANameAndASize(t *testing.T) {
	t.Parallel()
	type result struct {
		Disks []cloud.Disk
		Valid bool
	}
	many, kept := []cloud.Disk{}, []cloud.Disk{}
	for i := range cloud.MaxDisks + 1 {
		many = append(many, cloud.Disk{Name: fmt.Sprintf("d%02d", i), SizeMiB: 1})
	}
	kept = append(kept, many[:cloud.MaxDisks]...)
	for name, test := range map[string]struct {
		list []cloud.Disk
		want result
	}{
		"none":                              {nil, result{nil, true}},
		"two: in the order of their names":  {[]cloud.Disk{{"logs", 2048}, {"data", 1024}}, result{[]cloud.Disk{{"data", 1024}, {"logs", 2048}}, true}},
		"a size of 0: left out":             {[]cloud.Disk{{"data", 0}, {"logs", 1}}, result{[]cloud.Disk{{"logs", 1}}, false}},
		"a name twice: the first counts":    {[]cloud.Disk{{"data", 1}, {"data", 2}}, result{[]cloud.Disk{{"data", 1}}, false}},
		"a name with a space: left out":     {[]cloud.Disk{{"a b", 1}}, result{nil, false}},
		"no name: left out":                 {[]cloud.Disk{{"", 1}}, result{nil, false}},
		"a name that is too long: left out": {[]cloud.Disk{{strings.Repeat("a", 64), 1}}, result{nil, false}},
		"more than the limit: the first":    {many, result{kept, true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			disks, valid := cloud.NewDisks(test.list)
			if diff := cmp.Diff(test.want, result{disks.List(), valid}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDisksWithReplacesDisksByName(t *testing.T) {
	t.Parallel()
	got := cloud.Disks("data=1024 logs=2048").With("data=4096 more=1024")
	if diff := cmp.Diff(cloud.Disks("data=4096 logs=2048 more=1024"), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
