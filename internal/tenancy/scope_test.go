package tenancy

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

func mustParse(t *testing.T, text string) Scope {
	t.Helper()
	s, err := ParseScope(text)
	if err != nil {
		t.Fatalf("ParseScope: %v", err)
	}
	return s
}

func labelled(set labels.Set) func(*pcapi.Cloud) {
	return func(c *pcapi.Cloud) { c.Labels = set }
}

func TestParseScope(t *testing.T) {
	t.Parallel()
	east, none := labels.Set{"shard": "east"}, labels.Set(nil)
	for name, tc := range map[string]struct {
		text      string
		all       bool
		east      bool
		unlabeled bool
		invalid   bool
	}{
		"empty: all Clouds":                             {text: "", all: true, east: true, unlabeled: true},
		"spaces: all Clouds":                            {text: "  ", all: true, east: true, unlabeled: true},
		"equality: only Clouds with the label":          {text: "shard=east", east: true},
		"inequality: all others, also without a label":  {text: "shard!=east", unlabeled: true},
		"absence: only Clouds without the label":        {text: "!shard", unlabeled: true},
		"set: Clouds with one of the values":            {text: "shard in (east,north)", east: true},
		"several requirements: all of them must match":  {text: "shard=east,tier=gold"},
		"no operator values: refused":                   {text: "shard in", invalid: true},
		"a key that is none: refused":                   {text: "not a key=x", invalid: true},
		"a value that is none: refused":                 {text: "shard=-", invalid: true},
		"the YAML of a LabelSelector, no text: refused": {text: "{matchLabels: {shard: east}}", invalid: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := ParseScope(tc.text)
			if (err != nil) != tc.invalid {
				t.Fatalf("ParseScope: %v, want an error: %v", err, tc.invalid)
			}
			if tc.invalid {
				return
			}
			if s.All() != tc.all || s.Selects(east) != tc.east || s.Selects(none) != tc.unlabeled {
				t.Errorf("all %v, east %v, unlabeled %v", s.All(), s.Selects(east), s.Selects(none))
			}
		})
	}
}

func TestLeaseName(t *testing.T) {
	t.Parallel()
	if got := mustParse(t, "").LeaseName("lease"); got != "lease" {
		t.Errorf("all Clouds: lease %q", got)
	}
	equal := [][]string{
		{"shard=east", "shard==east", "shard in (east)", " shard = east ", "shard=east,shard=east"},
		{"shard in (east,north)", "shard in (north, east)"},
		{"a=b,c!=d", "c notin (d),a in (b)"},
		{"shard!=east"}, {"shard"}, {"!shard"}, {"shard=west"}, {"shard=east,tier=gold"},
	}
	names := map[string]int{"lease": -1}
	for i, texts := range equal {
		for _, text := range texts {
			name := mustParse(t, text).LeaseName("lease")
			if of, known := names[name]; known && of != i {
				t.Errorf("%q has the lease %q of another scope", text, name)
			}
			names[name] = i
		}
	}
	if len(names) != len(equal)+1 {
		t.Errorf("%d leases, want one for each of %d scopes and one for all Clouds", len(names), len(equal))
	}
	const known = "lease-d641b423f4" // deployments grant rights on it
	if got := mustParse(t, "shard=east").LeaseName("lease"); got != known {
		t.Errorf("lease %q of shard=east, want %q", got, known)
	}
}

func TestOwnership(t *testing.T) {
	t.Parallel()
	east, west := cloudWith("east", labelled(labels.Set{"shard": "east"})), cloudWith("west", labelled(labels.Set{"shard": "west"}))
	for name, tc := range map[string]struct {
		text, cloud  string
		cached, live []client.Object
		want         bool
		// reads is how many reads of the API server that takes.
		reads int
	}{
		"the Cloud matches: owned":                                           {text: "shard=east", cloud: "east", cached: []client.Object{east, west}, want: true},
		"the Cloud does not match: not owned":                                {text: "shard=east", cloud: "west", cached: []client.Object{east, west}},
		"the Cloud is missing, the scope lacks Clouds without labels":        {text: "shard=east", cloud: "typo"},
		"the Cloud is missing, the scope has Clouds without labels: owned":   {text: "shard!=east", cloud: "typo", want: true, reads: 1},
		"only the cache lacks the Cloud, another manager's: not owned":       {text: "shard!=east", cloud: "east", live: []client.Object{east}, reads: 1},
		"only the cache lacks the Cloud: not owned until the cache has it":   {text: "shard!=east", cloud: "west", live: []client.Object{west}, reads: 1},
		"the Cloud is in the cache and gone in the API server: still owned":  {text: "shard=east", cloud: "east", cached: []client.Object{east}, want: true},
		"a Cloud that is another manager's in the cache is not looked up":    {text: "shard!=east", cloud: "east", cached: []client.Object{east}},
		"a Cloud without labels, the scope has those without labels: owned":  {text: "!shard", cloud: "plain", cached: []client.Object{cloudWith("plain")}, want: true},
		"a Cloud without labels, the scope has those with labels: not owned": {text: "shard", cloud: "plain", cached: []client.Object{cloudWith("plain")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reads := 0
			api := interceptor.NewClient(readerOf(t, tc.live...), interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					reads++
					return c.Get(ctx, key, o, opts...)
				},
			})
			owned, err := mustParse(t, tc.text).Ownership(t.Context(), readerOf(t, tc.cached...), api, tc.cloud)
			if err != nil {
				t.Fatalf("Ownership: %v", err)
			}
			if owned() != tc.want || reads != tc.reads {
				t.Errorf("owned: %v after %d reads, want %v after %d", owned(), reads, tc.want, tc.reads)
			}
		})
	}
}

func TestOwnershipEndsWhenTheLabelsChange(t *testing.T) {
	t.Parallel()
	cached := readerOf(t, cloudWith("east", labelled(labels.Set{"shard": "east"})))
	ctx, cancel := context.WithCancel(t.Context())
	owned, err := mustParse(t, "shard=east").Ownership(ctx, cached, cached, "east")
	cancel()
	if err != nil || !owned() {
		t.Fatalf("Ownership: %v, owned %v; want the Cloud owned, also once the reconcile is asked to stop", err, owned())
	}
	var c pcapi.Cloud
	if err := cached.Get(t.Context(), client.ObjectKey{Name: "east"}, &c); err != nil {
		t.Fatal(err)
	}
	c.Labels["shard"] = "west"
	if err := cached.Update(t.Context(), &c); err != nil {
		t.Fatal(err)
	}
	if owned() {
		t.Error("still owned")
	}
}

var errAway = errors.New("the API server does not answer")

func TestOwnershipFailsIfTheAPIServerDoesNotAnswer(t *testing.T) {
	t.Parallel()
	away := interceptor.NewClient(readerOf(t), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errAway
		},
	})
	if _, err := mustParse(t, "!shard").Ownership(t.Context(), readerOf(t), away, "typo"); !errors.Is(err, errAway) {
		t.Errorf("Ownership: %v", err)
	}
}

func TestFilter(t *testing.T) {
	t.Parallel()
	cached := readerOf(t, cloudWith("east", labelled(labels.Set{"shard": "east"})), cloudWith("west"))
	vm := func(cloud string) *pcapi.VM {
		return &pcapi.VM{Spec: pcapi.VMSpec{CloudRef: &pcapi.CloudReference{Name: cloud}}}
	}
	cloudOf := func(_ context.Context, o client.Object) (string, error) {
		name := o.(*pcapi.VM).Spec.CloudRef.Name
		if name == "unknown" {
			return "", errAway
		}
		return name, nil
	}
	nothing := predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false }, UpdateFunc: func(event.UpdateEvent) bool { return false },
		DeleteFunc: func(event.DeleteEvent) bool { return false }, GenericFunc: func(event.GenericEvent) bool { return false },
	}
	for name, tc := range map[string]struct {
		text     string
		was, is  string
		changed  predicate.Predicate
		create   bool
		accepted bool
	}{
		"created on a Cloud of the scope: accepted":                {text: "shard=east", is: "east", create: true, changed: predicate.Funcs{}, accepted: true},
		"created on a Cloud of the scope, not wanted: rejected":    {text: "shard=east", is: "east", create: true, changed: nothing},
		"created on another manager's Cloud: rejected":             {text: "shard=east", is: "west", create: true, changed: predicate.Funcs{}},
		"created on a Cloud that cannot be found out: accepted":    {text: "shard=east", is: "unknown", create: true, changed: predicate.Funcs{}, accepted: true},
		"created on a missing Cloud, which others report":          {text: "shard=east", is: "typo", create: true, changed: predicate.Funcs{}},
		"created on a missing Cloud, reported here: accepted":      {text: "shard!=east", is: "typo", create: true, changed: predicate.Funcs{}, accepted: true},
		"updated on a Cloud of the scope: accepted":                {text: "shard=east", was: "east", is: "east", changed: predicate.Funcs{}, accepted: true},
		"updated on a Cloud of the scope, not wanted: rejected":    {text: "shard=east", was: "east", is: "east", changed: nothing},
		"updated on another manager's Cloud: rejected":             {text: "shard=east", was: "west", is: "west", changed: predicate.Funcs{}},
		"moved to a Cloud of the scope by any update: accepted":    {text: "shard=east", was: "west", is: "east", changed: nothing, accepted: true},
		"moved to another manager's Cloud by any update: accepted": {text: "shard=east", was: "east", is: "west", changed: nothing, accepted: true},
		"all Clouds: what is wanted is accepted":                   {text: "", was: "west", is: "east", changed: nothing},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			filter := mustParse(t, tc.text).Filter(t.Context(), cached, cloudOf, tc.changed)
			var got bool
			if tc.create {
				got = filter.Create(event.CreateEvent{Object: vm(tc.is)})
			} else {
				got = filter.Update(event.UpdateEvent{ObjectOld: vm(tc.was), ObjectNew: vm(tc.is)})
			}
			if got != tc.accepted {
				t.Errorf("accepted: %v, want %v", got, tc.accepted)
			}
		})
	}
}

func TestUsableCloudsOfAScope(t *testing.T) {
	t.Parallel()
	east, west := cloudWith("c", labelled(labels.Set{"shard": "east"})), cloudWith("c", labelled(labels.Set{"shard": "west"}))
	closing := func(c *pcapi.Cloud) *pcapi.Cloud {
		closing := c.DeepCopy()
		closing.Spec.Imports = pcapi.ImportPolicyAny
		return closing
	}
	update := func(text string, before, after *pcapi.Cloud) bool {
		return usableClouds(mustParse(t, text)).Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})
	}
	for name, tc := range map[string]struct{ got, want bool }{
		"enters the scope: selected":                        {update("shard=east", west, east), true},
		"leaves the scope: selected":                        {update("shard=east", east, west), true},
		"changes its labels, the scope is all: not":         {update("", east, west), false},
		"changes access in the scope: selected":             {update("shard=east", east, closing(east)), true},
		"changes access, another manager's: not":            {update("shard=east", west, closing(west)), false},
		"created, another manager's: selected, not missing": {usableClouds(mustParse(t, "shard=east")).Create(event.CreateEvent{Object: west}), true},
		"deleted, another manager's: selected, missing now": {usableClouds(mustParse(t, "shard=east")).Delete(event.DeleteEvent{Object: west}), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.got != tc.want {
				t.Errorf("selected: %v, want %v", tc.got, tc.want)
			}
		})
	}
}
