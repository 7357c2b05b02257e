package plugin_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/plugin"
	"github.com/privatecloud/operator/internal/plugin/plugintest"
)

func TestResourceKnowsTheNamesInTheCRDs(t *testing.T) {
	files, err := filepath.Glob("../../config/crd/bases/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no CRDs: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(data, &crd); err != nil {
			t.Fatal(err)
		}
		names := crd.Spec.Names
		for _, name := range append([]string{names.Singular, names.Plural, names.Kind, names.Plural + "." + crd.Spec.Group}, names.ShortNames...) {
			if got := plugin.Resource(name); got != names.Singular {
				t.Errorf("%q is %q, want %q", name, got, names.Singular)
			}
		}
	}
	for _, name := range []string{"", "s", "pod", "vgs", "vmes"} {
		if got := plugin.Resource(name); got != "" {
			t.Errorf("%q is %q, want none", name, got)
		}
	}
}

func TestCompletion(t *testing.T) {
	objects := []client.Object{
		&pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: "east"}}, &pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: "west"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}},
	}
	refused := interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return errors.New("no right")
	}}
	for name, tc := range map[string]struct {
		args  []string
		funcs interceptor.Funcs
		want  []string
	}{
		"Clouds":                            {args: []string{"brake", ""}, want: []string{"acknowledge", "east", "west"}},
		"Clouds with a prefix":              {args: []string{"brake", "acknowledge", "w"}, want: []string{"west"}},
		"nothing after the only argument":   {args: []string{"brake", "acknowledge", "west", ""}},
		"Clouds of an option":               {args: []string{"drain", "--cloud", ""}, want: []string{"east", "west"}},
		"namespaces":                        {args: []string{"top", "--namespace", "team"}, want: []string{"team-a"}},
		"the namespace of the operator":     {args: []string{"report", "--operator-namespace", ""}, want: []string{"other", "team-a"}},
		"tables":                            {args: []string{"top", ""}, want: []string{"vms", "groups", "clouds"}},
		"policies":                          {args: []string{"drain", "--policy", ""}, want: []string{"delete", "orphan"}},
		"nothing if they may not be listed": {args: []string{"brake", "acknowledge", ""}, funcs: refused},
	} {
		t.Run(name, func(t *testing.T) {
			s := plugintest.Setup{Client: plugintest.Builder(t, objects...).WithInterceptorFuncs(tc.funcs).Build()}
			got := s.Run(t.Context(), append([]string{"__complete"}, tc.args...)...)
			var proposals []string
			for line := range strings.Lines(got.Out) {
				if proposal, _, _ := strings.Cut(strings.TrimSpace(line), "\t"); !strings.HasPrefix(proposal, ":") {
					proposals = append(proposals, proposal)
				}
			}
			if diff := cmp.Diff(tc.want, proposals); diff != "" {
				t.Errorf("proposals (-want +got):\n%s%s", diff, got)
			}
		})
	}
}
