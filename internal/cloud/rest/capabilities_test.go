package rest

import (
	gocmp "cmp"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/privatecloud/operator/internal/cloud"
)

func declares(names ...cloud.Capability) func(*Config) {
	return func(cfg *Config) { cfg.Declared, cfg.Capabilities = true, names }
}

// A cloud that answers /capabilities in its own manner is not asked.
func TestDeclaredCapabilitiesAreNotAskedFor(t *testing.T) {
	t.Parallel()
	exclusive := func(cfg *Config) { cfg.ExclusiveNames = true }
	unique := func(cfg *Config) { cfg.UniqueNames = true }
	for name, test := range map[string]struct {
		stated []func(*Config)
		want   cloud.Capabilities
		// sent is /servers if empty.
		sent string
	}{
		"the core profile": {[]func(*Config){declares()}, cloud.NewCapabilities(), ""},
		"the core profile, names are unique": {
			[]func(*Config){declares(), unique}, cloud.NewCapabilities(cloud.UniqueNames), "",
		},
		"the core profile, names are unique and exclusive": {
			[]func(*Config){declares(), unique, exclusive}, cloud.NewCapabilities(cloud.UniqueNames, cloud.ExclusiveNames), "",
		},
		"names are exclusive but not unique: no proof": {[]func(*Config){declares(), exclusive}, cloud.NewCapabilities(), ""},
		"the extended profile": {
			[]func(*Config){declares(cloud.Labels, cloud.Power), unique}, cloud.NewCapabilities(cloud.Labels, cloud.Power, cloud.PowerAtCreate, cloud.Sizing), "/servers?limit=1",
		},
		"the extended profile with exclusive names": {
			[]func(*Config){declares(cloud.UniqueNames), exclusive}, cloud.NewCapabilities(cloud.UniqueNames, cloud.ExclusiveNames, cloud.Sizing), "/servers?limit=1",
		},
		"names that are not of a cloud: ignored": {
			[]func(*Config){declares(cloud.Power, cloud.ExclusiveNames, "teleport")}, cloud.NewCapabilities(cloud.Power, cloud.PowerAtCreate, cloud.Sizing), "/servers?limit=1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answers := answering(reply{status: 200, body: `[]`})
			c := serve(t, answers, test.stated...)
			got, err := c.Capabilities(t.Context())
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			want := []received{{method: "GET", target: gocmp.Or(test.sent, "/servers")}}
			if diff := cmp.Diff(want, answers.sent(), cmp.AllowUnexported(received{})); diff != "" {
				t.Errorf("sent (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExclusiveNamesNeedUniqueNames(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		got  reply
		want cloud.Capabilities
	}{
		"the cloud reports unique names": {
			reply{status: 200, body: `{"capabilities":["uniqueNames"]}`}, cloud.NewCapabilities(cloud.Sizing, cloud.UniqueNames, cloud.ExclusiveNames),
		},
		"the cloud reports none":              {reply{status: 200, body: `{"capabilities":["power"]}`}, cloud.NewCapabilities(cloud.Sizing, cloud.Power, cloud.PowerAtCreate)},
		"the cloud itself claims exclusivity": {reply{status: 200, body: `{"capabilities":["exclusiveNames"]}`}, cloud.NewCapabilities(cloud.Sizing)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := serve(t, answering(test.got), func(cfg *Config) { cfg.ExclusiveNames = true })
			got, err := c.Capabilities(t.Context())
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// A core cloud may answer anything to a call that it does not know.
func TestErrorOfCapabilitiesSaysHowToDeclareThem(t *testing.T) {
	t.Parallel()
	const advice = "; if this cloud has no GET /capabilities, declare its capabilities in spec.rest.capabilities: [] is the core profile"
	for name, test := range map[string]struct {
		got    reply
		advice bool
	}{
		"400":             {reply{status: 400}, true},
		"401":             {reply{status: 401}, true},
		"403":             {reply{status: 403}, true},
		"405":             {reply{status: 405}, true},
		"500":             {reply{status: 500}, true},
		"501":             {reply{status: 501}, true},
		"HTML":            {reply{status: 200, media: "text/html", body: "<html>"}, true},
		"an empty object": {reply{status: 200, body: `{}`}, true},
		"text":            {reply{status: 200, media: "text/plain", body: "OK"}, true},
		"an outage: none": {reply{status: 503}, false},
		"too many: none":  {reply{status: 429}, false},
		"cut short: none": {reply{status: 200, body: "{", header: map[string]string{"Content-Length": "100"}}, false},
		"no answer: none": {reply{drop: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, verb := range []string{"capabilities", "create"} {
				err := verbs[verb](t.Context(), serve(t, answering(test.got)))
				if err == nil || strings.HasSuffix(err.Error(), advice) != test.advice {
					t.Errorf("%s: %v; want the advice: %t", verb, err, test.advice)
				}
			}
		})
	}
}

func TestDeclaredCoreCloudThatPagesIsUnreadable(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"capabilities", "list"} {
		c := serve(t, answering(reply{status: 200, body: `{"servers":[],"next":"m"}`}), declares())
		wantText(t, verbs[verb](t.Context(), c), "list servers: the listing has further pages, though spec.rest.capabilities declares the core profile")
	}
}

// A client is replaced once its successor's Capabilities succeed.
func TestDeclaredCapabilitiesNeedCloudThatAnswers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		got  reply
		want outcome
	}{
		"refused credentials": {reply{status: 401}, outcome{Kind: cloud.Unauthorized}},
		"an outage":           {reply{status: 503}, outcome{Kind: cloud.Unavailable}},
		"a portal":            {reply{status: 200, media: "text/html", body: "<html>"}, outcome{Kind: cloud.Unreadable}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantOutcome(t, verbs["capabilities"](t.Context(), serve(t, answering(test.got), declares(cloud.Labels))), test.want)
		})
	}
}

func TestDeclaredCapabilitiesOfCreateNeedNoCall(t *testing.T) {
	t.Parallel()
	answers := answering(reply{status: 201, body: `{"id":"i-1","name":"web"}`})
	if err := verbs["create"](t.Context(), serve(t, answers, declares())); err != nil || answers.count() != 1 {
		t.Errorf("%v, sent %v; want the create alone", err, answers.sent())
	}
}

// Some clouds answer every path with their servers.
func TestAnswerThatHoldsNoCapabilitiesIsNamed(t *testing.T) {
	t.Parallel()
	const advice = "; if this cloud has no GET /capabilities, declare its capabilities in spec.rest.capabilities: [] is the core profile"
	const servers = "GET /capabilities was answered with a list of servers, not with capabilities"
	const list = `GET /capabilities was answered with a bare list, not with an object that has the list "capabilities"`
	for name, test := range map[string]struct{ body, want string }{
		"servers of a core cloud":      {`[{"id":"i-1","name":"web"}]`, servers},
		"servers of an extended cloud": {`{"servers":[{"id":"i-1","name":"web"}]}`, servers},
		"no servers":                   {`{"servers":[],"next":null}`, servers},
		"an empty list":                {`[]`, list},
		"a bare list of names":         {`["labels"]`, list},
		"another object":               {`{"version":1}`, "the answer holds no list of capabilities"},
		"an object of capabilities":    {`{"capabilities":{"labels":true}}`, "the answer holds no list of capabilities"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantText(t, verbs["capabilities"](t.Context(), serve(t, answering(reply{status: 200, body: test.body}))), "get capabilities: "+test.want+advice)
		})
	}
}

// A newer cloud may have more capabilities, so that they are no fault of it. One that is almost a known
// name is a mistake.
func TestUnknownCapabilitiesAreReported(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reported     string
		ignored, log []string
	}{
		"known ones":         {`["labels","power"]`, nil, nil},
		"an unknown one":     {`["labels","teleport","teleport"]`, nil, []string{`["teleport"]`}},
		"in another case":    {`["Labels"]`, []string{"capabilities: a name that is almost labels: names are compared exactly"}, []string{`["Labels"]`}},
		"with an underscore": {`["unique_names"]`, []string{"capabilities: a name that is almost uniqueNames: names are compared exactly"}, []string{`["unique_names"]`}},
		"control characters": {`["tele\u001b\u202eport"]`, nil, []string{`["teleport"]`}},
		"a long one":         {`["` + strings.Repeat("x", 1000) + `"]`, nil, []string{`["` + strings.Repeat("x", 63) + `…"]`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var lines []string
			log := funcr.New(func(_, args string) {
				if _, names, found := strings.Cut(args, `"names"=`); found {
					lines = append(lines, names)
				}
			}, funcr.Options{})
			c := serve(t, answering(reply{status: 200, body: `{"capabilities":` + test.reported + `}`}), func(cfg *Config) { cfg.Log = log })
			if err := verbs["capabilities"](t.Context(), c); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.ignored, c.Ignored(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("ignored (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.log, lines, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("logged (-want +got):\n%s", diff)
			}
		})
	}
}
