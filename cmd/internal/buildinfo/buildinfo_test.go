package buildinfo

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestNewCollectorHasVersionAndGoVersionAsLabels(t *testing.T) {
	want := fmt.Sprintf(`# HELP privatecloud_build_info Always 1; the labels are the version of the binary and the Go version that built it.
# TYPE privatecloud_build_info gauge
privatecloud_build_info{goversion=%q,version="v1.2.3"} 1
`, runtime.Version())
	if err := testutil.CollectAndCompare(NewCollector("v1.2.3"), strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
