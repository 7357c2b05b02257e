package leader_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/privatecloud/operator/internal/leader"
)

// TestNewLeavesTheConfigAsItIs: the timeout of the lease's client would end each watch of
// the manager after five seconds, and each write.
func TestNewLeavesTheConfigAsItIs(t *testing.T) {
	config := &rest.Config{Host: "https://127.0.0.1:1", UserAgent: "private-cloud-operator/test", QPS: -1}
	before := rest.CopyConfig(config)
	lock, err := leader.New(leader.Config{Rest: config, Scheme: runtime.NewScheme(), Namespace: "ns", Name: "lease", Term: term})
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if diff := cmp.Diff(before.String(), config.String()); diff != "" {
		t.Errorf("the config changed (-before +after):\n%s", diff)
	}
}
