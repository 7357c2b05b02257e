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
	longest := strings.Repeat("é", cloud.MaxDiskType)
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
		"two: in the order of their names":  {[]cloud.Disk{{Name: "logs", SizeMiB: 2048}, {Name: "data", SizeMiB: 1024}}, result{[]cloud.Disk{{Name: "data", SizeMiB: 1024}, {Name: "logs", SizeMiB: 2048}}, true}},
		"a size of 0: left out":             {[]cloud.Disk{{Name: "data", SizeMiB: 0}, {Name: "logs", SizeMiB: 1}}, result{[]cloud.Disk{{Name: "logs", SizeMiB: 1}}, false}},
		"a name twice: the first counts":    {[]cloud.Disk{{Name: "data", SizeMiB: 1}, {Name: "data", SizeMiB: 2}}, result{[]cloud.Disk{{Name: "data", SizeMiB: 1}}, false}},
		"a name with a space: left out":     {[]cloud.Disk{{Name: "a b", SizeMiB: 1}}, result{nil, false}},
		"no name: left out":                 {[]cloud.Disk{{Name: "", SizeMiB: 1}}, result{nil, false}},
		"a name that is too long: left out": {[]cloud.Disk{{Name: strings.Repeat("a", 64), SizeMiB: 1}}, result{nil, false}},
		"a type with any characters":        {[]cloud.Disk{{Name: "data", SizeMiB: 1, Type: "a = b+%20é"}}, result{[]cloud.Disk{{Name: "data", SizeMiB: 1, Type: "a = b+%20é"}}, true}},
		"kept, with and without a type":     {[]cloud.Disk{{Name: "data", SizeMiB: 1, Keep: true}, {Name: "logs", SizeMiB: 1, Type: "a = b", Keep: true}}, result{[]cloud.Disk{{Name: "data", SizeMiB: 1, Keep: true}, {Name: "logs", SizeMiB: 1, Type: "a = b", Keep: true}}, true}},
		"kept, of a type that is too long":  {[]cloud.Disk{{Name: "data", SizeMiB: 1, Type: longest + "é", Keep: true}}, result{[]cloud.Disk{{Name: "data", SizeMiB: 1, Keep: true}}, false}},
		"the longest type":                  {[]cloud.Disk{{Name: "data", SizeMiB: 1, Type: longest}}, result{[]cloud.Disk{{Name: "data", SizeMiB: 1, Type: longest}}, true}},
		"a type that is too long: left out": {[]cloud.Disk{{Name: "data", SizeMiB: 1, Type: longest + "é"}}, result{[]cloud.Disk{{Name: "data", SizeMiB: 1}}, false}},
		"a type of two lines: left out":     {[]cloud.Disk{{Name: "data", SizeMiB: 1, Type: "a\nb"}}, result{[]cloud.Disk{{Name: "data", SizeMiB: 1}}, false}},
		"a type that is no text: left out":  {[]cloud.Disk{{Name: "data", SizeMiB: 1, Type: "a\xff"}}, result{[]cloud.Disk{{Name: "data", SizeMiB: 1}}, false}},
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

func TestDisksOfARevert(t *testing.T) {
	t.Parallel()
	got := cloud.Disks("a=1 b=1==keep c=1 gone=1==keep").Reverted("a=2==keep b=2 c=2 new=1 more=1=fast=keep")
	if diff := cmp.Diff(cloud.Disks("a=1==keep b=1 c=1 gone=1==keep more=1=fast=keep"), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a", "gone", "more"}, got.KeptNames()); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
}

func TestDisksWithKeepsTypes(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff(cloud.Disks("data=4096==keep logs=1=fast"), cloud.Disks("data=1024==keep").With("data=4096 logs=1=fast")); diff != "" {
		t.Errorf("one that is kept (-want +got):\n%s", diff)
	}
	if got := cloud.Disks("data=1=fast logs=1=slow=keep").Keeping("data", true).Keeping("logs", false).Keeping("gone", true); got != "data=1=fast=keep logs=1=slow" {
		t.Errorf("after changes of what is kept: %q", got)
	}
	got := cloud.Disks("data=1024=fast logs=2048").With("data=4096=slow logs=4096=slow more=1024=slow")
	if diff := cmp.Diff(cloud.Disks("data=4096=fast logs=4096 more=1024=slow"), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if size, of, none := got.Size("more"), got.Type("more"), got.Type("gone"); size != 1024 || of != "slow" || none != "" {
		t.Errorf("disk more: size %d, type %q; disk gone: type %q", size, of, none)
	}
}

func TestNeedsOfDisks(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ want, got []cloud.Capability }{
		"no disks":                     {nil, cloud.Disks("").Needs()},
		"disks":                        {[]cloud.Capability{cloud.WithDisks}, cloud.Disks("a=1 b=1").Needs()},
		"disks, one with a type":       {[]cloud.Capability{cloud.WithDisks, cloud.DiskTypes}, cloud.Disks("a=1 b=1=fast").Needs()},
		"disks, one that is kept":      {[]cloud.Capability{cloud.WithDisks, cloud.KeepDisks}, cloud.Disks("a=1==keep b=1").Needs()},
		"no root disk":                 {nil, cloud.RootDisk{}.Needs()},
		"the size of the root disk":    {[]cloud.Capability{cloud.WithRootDisk}, cloud.RootDisk{SizeMiB: 1}.Needs()},
		"the type of the root disk":    {[]cloud.Capability{cloud.WithRootDisk, cloud.DiskTypes}, cloud.RootDisk{Type: "fast"}.Needs()},
		"the size and the type of one": {[]cloud.Capability{cloud.WithRootDisk, cloud.DiskTypes}, cloud.RootDisk{SizeMiB: 1, Type: "fast"}.Needs()},
	} {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Any type survives the text of the disks, or is left out.
func FuzzTypesOfDisks(f *testing.F) {
	for _, of := range []string{"", "fast", "a b", "a=b", "+%20", "é\u2028", "\xff", "\x00"} {
		f.Add(of)
	}
	f.Fuzz(func(t *testing.T, of string) {
		disks, valid := cloud.NewDisks([]cloud.Disk{{Name: "a", SizeMiB: 1, Type: of}, {Name: "b", SizeMiB: 2}})
		want := of
		if !valid {
			want = ""
		}
		if kept := of == "" || cloud.ValidDiskType(of); kept != valid {
			t.Errorf("the type %q is valid: %t, want %t", of, valid, kept)
		}
		if diff := cmp.Diff([]cloud.Disk{{Name: "a", SizeMiB: 1, Type: want}, {Name: "b", SizeMiB: 2}}, disks.List()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
