package transport

import (
	"errors"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
)

// logged returns the lines that one request leaves in the log.
func logged(t *testing.T, verbosity int, base http.RoundTripper) []string {
	t.Helper()
	var lines []string
	c := newTransport(t, nil, func(cfg *Config) {
		cfg.Base = base
		cfg.Log = funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{Verbosity: verbosity})
	})
	req, err := http.NewRequestWithContext(WithCall(t.Context(), Call{Route: "/servers/{id}"}), http.MethodGet, endpoint+"/servers/hunter2", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer hunter2")
	req.Header.Set("X-Auth-Token", "hunter3")
	req.Header.Set("X-Subject-Token", "hunter4")
	req.Header.Set("X-Request-Id", "r-1")
	if resp, err := c.Client().Do(req); err == nil {
		_ = resp.Body.Close()
	}
	duration := regexp.MustCompile(`"duration"="[^"]*"`)
	for i := range lines {
		lines[i] = duration.ReplaceAllString(lines[i], `"duration"="0s"`)
	}
	return lines
}

func TestLogHasOneLinePerRequestWithoutSecrets(t *testing.T) {
	t.Parallel()
	answer := handlerBase(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Request-Id", "a-1\u202e"+strings.Repeat("x", 200))
		w.Header().Set("Set-Cookie", "hunter2")
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte("hunter2"))
	})
	echo := handlerBase(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("X-Request-Id", "of "+req.Header.Get("Authorization"))
	})
	echoTokens := handlerBase(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("X-Request-Id", req.Header.Get("X-Auth-Token")+" "+req.Header.Get("X-Subject-Token"))
	})
	const common = `"level"=1 "msg"="called the cloud" "cloud"="test" "method"="GET" "route"="/servers/{id}" "requestID"="r-1" "duration"="0s"`
	for name, test := range map[string]struct {
		verbosity int
		base      http.RoundTripper
		want      []string
	}{
		"an answer: status and request ids":                                     {1, answer, []string{common + ` "status"=201 "answerID"="a-1` + strings.Repeat("x", 124) + `…"`}},
		"an answer with the tokens of an OpenStack as its request id: redacted": {1, echoTokens, []string{common + ` "status"=200 "answerID"="REDACTED REDACTED"`}},
		"an answer with the token as its request id: redacted":                  {1, echo, []string{common + ` "status"=200 "answerID"="of Bearer REDACTED"`}},
		"no answer: the kind of failure":                                        {1, failing(errors.New("hunter2")), []string{common + ` "kind"="Unavailable"`}},
		"lower verbosity: no line":                                              {0, answer, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, logged(t, test.verbosity, test.base)); diff != "" {
				t.Errorf("log (-want +got):\n%s", diff)
			}
		})
	}
}
