package openstack

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestExampleInTheBundleHasTheCapabilities(t *testing.T) {
	example, err := os.ReadFile("../../../config/manifests/examples/cloud_openstack.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if want := "capabilities: " + strings.ReplaceAll(fmt.Sprint(has), " ", ", "); !strings.Contains(string(example), want) {
		t.Errorf("the example lacks %q", want)
	}
}
