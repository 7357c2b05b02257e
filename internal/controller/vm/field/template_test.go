package field

import (
	"testing"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

func TestImageStatusShowsWhatTheCloudShows(t *testing.T) {
	debian := &pcapi.VMImageStatus{Name: "debian", ID: "i-1"}
	for name, tc := range map[string]struct {
		image cloud.Image
		last  *pcapi.VMImageStatus
		want  *pcapi.VMImageStatus
	}{
		"no image":                               {},
		"no image any more":                      {last: debian},
		"a name without an id":                   {image: cloud.Image{Name: "debian"}, want: &pcapi.VMImageStatus{Name: "debian"}},
		"an id without a name: a deleted image":  {image: cloud.Image{ID: "i-1"}, want: &pcapi.VMImageStatus{ID: "i-1"}},
		"the name of a known image is not shown": {image: cloud.Image{ID: "i-1"}, last: debian, want: debian},
		"a known image was renamed":              {image: cloud.Image{ID: "i-1", Name: "bookworm"}, last: debian, want: &pcapi.VMImageStatus{ID: "i-1", Name: "bookworm"}},
		"another image, whose name is not known": {image: cloud.Image{ID: "i-2"}, last: debian, want: &pcapi.VMImageStatus{ID: "i-2"}},
		"another image without an id":            {image: cloud.Image{Name: "alpine"}, last: &pcapi.VMImageStatus{Name: "debian"}, want: &pcapi.VMImageStatus{Name: "alpine"}},
	} {
		t.Run(name, func(t *testing.T) {
			equal(t, "status.image", tc.want, imageStatus(tc.image, tc.last))
		})
	}
}
