package openstack

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

// metadataKey is the rule of the compute service.
var metadataKey = regexp.MustCompile(`^[a-zA-Z0-9-_:. ]{1,255}$`)

func TestLabelKeysAreEncodedForMetadata(t *testing.T) {
	for key, want := range map[string]string{
		"plain":                       "plain",
		"samplecontroller.k8s.io/uid": "samplecontroller.k8s.io:2fuid",
		"a:b":                         "a:3ab",
		"a b":                         "a:20b",
		"é":                           ":c3:a9",
		":2f":                         ":3a2f",
	} {
		if got := encodeKey(key); got != want || decodeKey(got) != key {
			t.Errorf("%q: encoded %q, which is decoded to %q; want %q", key, got, decodeKey(got), want)
		}
	}
	for _, foreign := range []string{"a:zz", "a:", ":", "a:2", "a:2F", "ends:3", "a b", ":65nv", ":3a:zz", "a:2fb c"} {
		if got := decodeKey(foreign); got != foreign {
			t.Errorf("a key of somebody else, %q, became %q", foreign, got)
		}
	}
}

// Which value a label has does not depend on the order of a map, so each case is run often.
func TestKeysOfSomebodyElseAreNoOtherLabels(t *testing.T) {
	for name, tc := range map[string]struct{ metadata, want map[string]string }{
		"a letter that is escaped":             {map[string]string{"env": "ours", ":65nv": "theirs"}, map[string]string{"env": "ours", ":65nv": "theirs"}},
		"another case of digits":               {map[string]string{"a:2fb": "ours", "a:2Fb": "theirs"}, map[string]string{"a/b": "ours", "a:2Fb": "theirs"}},
		"the key of a label as it is":          {map[string]string{"a:20b": "ours", "a b": "theirs"}, map[string]string{"a b": "ours"}},
		"the same, with a letter escaped":      {map[string]string{":3a65nv": "ours", ":65nv": "theirs"}, map[string]string{":65nv": "ours"}},
		"a key that is one of the client's":    {map[string]string{sizeKey: "1x1@f", ":70rivatecloud:size": "theirs"}, map[string]string{":70rivatecloud:size": "theirs"}},
		"only one of somebody else, unescaped": {map[string]string{"a b": "theirs"}, map[string]string{"a b": "theirs"}},
	} {
		for range 50 {
			if diff := cmp.Diff(tc.want, labelsOf(tc.metadata)); diff != "" {
				t.Errorf("%s: labels (-want +got):\n%s", name, diff)
				break
			}
		}
	}
}

func FuzzLabelKeysSurvive(f *testing.F) {
	f.Add("samplecontroller.k8s.io/uid")
	f.Add(":2f:")
	f.Fuzz(func(t *testing.T, key string) {
		encoded := encodeKey(key)
		if decodeKey(encoded) != key {
			t.Errorf("%q: encoded %q, decoded %q", key, encoded, decodeKey(encoded))
		}
		if key != "" && len(encoded) <= maxMetadata && !metadataKey.MatchString(encoded) {
			t.Errorf("%q: %q is no key of metadata", key, encoded)
		}
		switch encoded {
		case templateKey, networkKey, sizeKey, resizeKey, groupKey:
			t.Errorf("%q: %q is a key of the client's own", key, encoded)
		}
	})
}

func TestLabelsThatDoNotFitAreRejected(t *testing.T) {
	for name, labels := range map[string]map[string]string{
		"no key":            {"": "v"},
		"a long key":        {strings.Repeat("/", 86): "v"},
		"a long value":      {"k": strings.Repeat("ж", 256)},
		"a value not UTF-8": {"k": "\xff"},
	} {
		if _, err := metadata("test", labels); err == nil || err.Kind != cloud.Rejected {
			t.Errorf("%s: %v, want Rejected", name, err)
		}
	}
	if _, err := metadata("test", map[string]string{strings.Repeat("/", 85): strings.Repeat("ж", 255)}); err != nil {
		t.Errorf("a key and a value of 255: %v", err)
	}
}

func TestTagIsMadeOnlyOfValuesThatFit(t *testing.T) {
	for value, want := range map[string]string{
		someID: "uid-" + someID, "": "", "a/b": "", "a,b": "",
		strings.Repeat("u", 56): "uid-" + strings.Repeat("u", 56), strings.Repeat("u", 57): "",
	} {
		if got := tag(value); got != want {
			t.Errorf("%q: tag %q, want %q", value, got, want)
		}
	}
}

func TestCreateSendsLabelsTagAndDefaults(t *testing.T) {
	s := newStub(t)
	s.on("POST compute/servers", `{"server": {"id": "`+someID+`", "adminPass": "x"}}`, 202)
	c := s.client(func(c *Config) { c.Zone = "nova" })
	result, err := c.CreateServer(t.Context(), cloud.CreateServer{
		Name: "web", CPU: 4, Template: "debian", NetworkID: otherID, Labels: map[string]string{"owner/uid": "u-1", "k": "v"}, IdempotencyKey: "ignored",
	})
	if err != nil {
		t.Fatalf("CreateServer: %v", err)
	}
	want := cloud.Result{Operation: "create." + someID, Server: cloud.Server{
		ID: someID, Name: "web", State: cloud.StateBuilding, CPU: 4, MemoryMiB: 8192, Flavor: "large", Image: cloud.Image{Name: "debian", ID: otherID}, NetworkID: otherID,
		Labels: map[string]string{"owner/uid": "u-1", "k": "v"},
	}}
	if diff := cmp.Diff(want, result); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	sent := s.taken()
	wantBody := `POST compute/servers {"server":{"availability_zone":"nova","flavorRef":"f2","imageRef":"` + otherID + `",` +
		`"metadata":{"k":"v","owner:2fuid":"u-1","privatecloud:network":"` + otherID + `"},` +
		`"name":"web","networks":[{"uuid":"` + otherID + `"}],"tags":["uid-u-1"]}}`
	if diff := cmp.Diff(wantBody, sent[len(sent)-1]); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
	if _, err := c.CreateServer(t.Context(), cloud.CreateServer{Name: "bare"}); err != nil {
		t.Fatalf("CreateServer: %v", err)
	}
	sent = s.taken() // the image and the flavors are known by now
	wantSent := []string{`POST compute/servers {"server":{"availability_zone":"nova","flavorRef":"f1","imageRef":"` + otherID + `","name":"bare","networks":"none"}}`}
	if diff := cmp.Diff(wantSent, sent); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
}

func TestNamesAreCheckedByTheRulesOfCompute(t *testing.T) {
	s := newStub(t)
	c := s.client()
	for name, want := range map[string]cloud.Kind{
		"web": "", "сервер": "", "a/b": "", "..": "", `quo"te`: "", strings.Repeat("ж", 255): "", "a\u00a0b": "",
		"": cloud.Rejected, "\xff": cloud.Rejected,
		" web": cloud.Prohibited, "web ": cloud.Prohibited, "🖥": cloud.Prohibited, "a\u200bb": cloud.Prohibited, "a\nb": cloud.Prohibited,
		strings.Repeat("x", 256): cloud.Prohibited,
	} {
		if err := c.CheckName(t.Context(), cloud.Name{Name: name}); cloud.KindOf(err) != want {
			t.Errorf("%q: %v, want %q", name, err, want)
		}
	}
	if sent := s.taken(); len(sent) != 0 {
		t.Errorf("sent %v, want nothing", sent)
	}
}
