package v1alpha1

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
)

// serveClouds serves the webhook for Clouds until the test ends, and returns its URL.
func serveClouds(t *testing.T, timeout time.Duration) (h *handler, url string) {
	t.Helper()
	h = newCloudHandler(timeout)
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return h, server.URL
}

// recorder is a response without a connection.
type recorder struct{ *httptest.ResponseRecorder }

func (recorder) SetReadDeadline(time.Time) error { return nil }

// send sends a body and returns status and body of the answer.
func send(t *testing.T, url, contentType string, body io.Reader) (status int, answer string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, body)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	request.Header.Set("Content-Type", contentType)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, ""
	}
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Error(err)
	}
	if err := response.Body.Close(); err != nil {
		t.Error(err)
	}
	return response.StatusCode, string(text)
}

// sized returns a review of a Cloud that has this size, and is to be allowed.
func sized(t *testing.T, size int) []byte {
	t.Helper()
	body := review(t, admissionv1.Create, nil, aCloud("c", allows()))
	return append(body, bytes.Repeat([]byte(" "), size-len(body))...)
}

// streamed hides the length of a body, so that it is sent in chunks.
type streamed struct{ io.Reader }

func TestReviewsOfCloudsAreAnsweredOverHTTP(t *testing.T) {
	_, url := serveClouds(t, time.Minute)
	for name, tc := range map[string]struct {
		contentType string
		body        io.Reader
		status      int
		answer      string
	}{
		"refused":                      {"application/json", bytes.NewReader(review(t, admissionv1.Create, nil, aCloud("c"))), http.StatusOK, `"allowed":false,"status":{"metadata":{},"status":"Failure","message":"spec.allowedNamespaces is required`},
		"allowed":                      {"application/json; charset=utf-8", bytes.NewReader(sized(t, 1000)), http.StatusOK, `"response":{"uid":"705ab4f5","allowed":true}`},
		"small":                        {"application/json", bytes.NewReader(sized(t, smallReview)), http.StatusOK, `"allowed":true`},
		"large":                        {"application/json", bytes.NewReader(sized(t, smallReview+1)), http.StatusOK, `"allowed":true`},
		"the largest":                  {"application/json", bytes.NewReader(sized(t, largestReview)), http.StatusOK, `"allowed":true`},
		"the largest, in chunks":       {"application/json", streamed{bytes.NewReader(sized(t, largestReview))}, http.StatusOK, `"allowed":true`},
		"too large":                    {"application/json", bytes.NewReader(sized(t, largestReview+1)), http.StatusRequestEntityTooLarge, "too large"},
		"too large, in chunks":         {"application/json", streamed{bytes.NewReader(sized(t, largestReview+1))}, http.StatusRequestEntityTooLarge, "too large"},
		"YAML":                         {"application/yaml", strings.NewReader("apiVersion: admission.k8s.io/v1"), http.StatusUnsupportedMediaType, "not JSON"},
		"JSON without its type":        {"", bytes.NewReader(sized(t, 1000)), http.StatusUnsupportedMediaType, "not JSON"},
		"YAML that is said to be JSON": {"application/json", strings.NewReader("apiVersion: admission.k8s.io/v1"), http.StatusBadRequest, "not an AdmissionReview"},
	} {
		t.Run(name, func(t *testing.T) {
			status, answer := send(t, url, tc.contentType, tc.body)
			if status != tc.status || !strings.Contains(answer, tc.answer) {
				t.Errorf("status %d with %s, want %d with %s", status, answer, tc.status, tc.answer)
			}
		})
	}
}

// A server reads what is left of a body before it sends the answer.
func TestReviewThatIsRefusedEndsWithoutItsBody(t *testing.T) {
	for name, contentType := range map[string]string{"too many reviews": "application/json", "another type": "text/plain"} {
		t.Run(name, func(t *testing.T) {
			h, url := serveClouds(t, 300*time.Millisecond)
			if contentType == "application/json" {
				for range cap(h.all) {
					h.all.take()
				}
			}
			endless, never := io.Pipe()
			t.Cleanup(func() { _ = never.Close() })
			status, _ := send(t, url, contentType, endless)
			if status != http.StatusTooManyRequests && status != http.StatusUnsupportedMediaType && status != 0 {
				t.Errorf("status %d, want that of a refusal", status)
			}
		})
	}
}

func TestReviewOfACloudThatDoesNotArriveEnds(t *testing.T) {
	for name, begun := range map[string]int{"nothing arrives": 0, "a large part arrives": smallReview + 1} {
		t.Run(name, func(t *testing.T) {
			h, url := serveClouds(t, 300*time.Millisecond)
			endless, never := io.Pipe()
			t.Cleanup(func() { _ = never.Close() })
			status, _ := send(t, url, "application/json", io.MultiReader(bytes.NewReader(make([]byte, begun)), endless))
			if status != http.StatusBadRequest && status != 0 { // the client may notice first that the server reads no more
				t.Errorf("status %d, want %d", status, http.StatusBadRequest)
			}
			for range cap(h.large) {
				if _, ok := h.large.take(); !ok {
					t.Fatal("a slot for large reviews is still taken")
				}
			}
		})
	}
}

// TestSlowConnectionsDoNotOccupyTheSlotsOfLargeReviews has as many connections as there are
// such slots, each of which has sent all of a small review but its end.
func TestSlowConnectionsDoNotOccupyTheSlotsOfLargeReviews(t *testing.T) {
	h, url := serveClouds(t, time.Minute)
	finish := make(chan struct{})
	ended := make(chan int, largeReviews)
	for range largeReviews {
		body, sending := io.Pipe()
		go func() {
			status, _ := send(t, url, "application/json", body)
			ended <- status
		}()
		begin := sized(t, smallReview)
		if _, err := sending.Write(begin[:smallReview-1]); err != nil {
			t.Fatal(err)
		}
		go func() {
			<-finish
			_, _ = sending.Write(begin[smallReview-1:])
			_ = sending.Close()
		}()
	}
	for _, size := range []int{1000, largestReview} {
		if status, answer := send(t, url, "application/json", bytes.NewReader(sized(t, size))); status != http.StatusOK {
			t.Errorf("a review of %d bytes: status %d, %s", size, status, answer)
		}
	}
	expect(t, "slots for large reviews that are taken", 0, len(h.large))
	close(finish)
	for range largeReviews {
		expect(t, "status of a slow one", http.StatusOK, <-ended)
	}
}

func TestExcessReviewsOfCloudsAreRefused(t *testing.T) {
	h, url := serveClouds(t, time.Minute)
	occupy := func(s slots) (release func()) {
		for range cap(s) {
			if _, ok := s.take(); !ok {
				t.Fatal("a slot is taken")
			}
		}
		return func() {
			for range cap(s) {
				<-s
			}
		}
	}
	status := func(size int) int {
		t.Helper()
		got, _ := send(t, url, "application/json", bytes.NewReader(sized(t, size)))
		return got
	}
	release := occupy(h.large)
	expect(t, "a large one beside the most large ones", http.StatusTooManyRequests, status(smallReview+1))
	expect(t, "a small one beside them", http.StatusOK, status(smallReview))
	release()
	expect(t, "a large one after them", http.StatusOK, status(smallReview+1))

	release = occupy(h.all)
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, cloudPath, nil)
	answer := recorder{httptest.NewRecorder()}
	h.ServeHTTP(answer, request)
	expect(t, "status of one too many", http.StatusTooManyRequests, answer.Code)
	expect(t, "the API server tries again", "1", answer.Header().Get("Retry-After"))
	release()
	expect(t, "one after them", http.StatusOK, status(1000))
}

// TestReviewsOfVMsAreBounded shows the limits of the name check webhook that those of Clouds do not have.
func TestReviewsOfVMsAreBounded(t *testing.T) {
	h := newVMHandler(time.Minute, &newHarness(t, nil, aCloud("default")).validator)
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	body := func(size int) []byte {
		body := review(t, admissionv1.Create, nil, aVM())
		return append(body, bytes.Repeat([]byte(" "), size-len(body))...)
	}
	for name, tc := range map[string]struct {
		body   io.Reader
		status int
	}{
		"the largest":            {bytes.NewReader(body(smallReview)), http.StatusOK},
		"the largest, in chunks": {streamed{bytes.NewReader(body(smallReview))}, http.StatusOK},
		"too large":              {bytes.NewReader(body(smallReview + 1)), http.StatusRequestEntityTooLarge},
		"too large, in chunks":   {streamed{bytes.NewReader(body(smallReview + 1))}, http.StatusRequestEntityTooLarge},
	} {
		status, answer := send(t, server.URL, "application/json", tc.body)
		if status != tc.status {
			t.Errorf("%s: status %d with %s, want %d", name, status, answer, tc.status)
		}
	}
	for range mostReviews {
		if _, ok := h.all.take(); !ok {
			t.Fatal("a slot is taken")
		}
	}
	answer := recorder{httptest.NewRecorder()}
	h.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodPost, vmPath, nil))
	expect(t, "status of one too many", http.StatusTooManyRequests, answer.Code)
	expect(t, "the API server stores the VM at once", "", answer.Header().Get("Retry-After"))
}

// hostile are bodies whose decoded form could be many times as large.
func hostile() map[string][]byte {
	const size = 1 << 20
	fill := func(begin, repeated, end string) []byte {
		return []byte(begin + strings.Repeat(repeated, (size-len(begin)-len(end))/len(repeated)) + end)
	}
	const review = `{"apiVersion":"admission.k8s.io/v1","request":{"uid":"1","operation":"CREATE"`
	return map[string][]byte{
		"conditions":             fill(review+`,"object":{"status":{"conditions":[{}`, `,{}`, `]}}}}`),
		"owners":                 fill(review+`,"object":{"metadata":{"ownerReferences":[{}`, `,{}`, `]}}}}`),
		"expressions":            fill(review+`,"object":{"spec":{"allowedNamespaces":{"matchExpressions":[{}`, `,{}`, `]}}}}}`),
		"labels":                 fill(review+`,"object":{"spec":{"allowedNamespaces":{"matchLabels":{"":""`, `,"":""`, `}}}}}}`),
		"a UID":                  fill(review+`,"uid":"`, `1`, `"}}`),
		"an escaped operation":   fill(review+`,"operation":"`, `\u0041`, `"}}`),
		"UIDs":                   fill(review, `,"uid":""`, `}}`),
		"UIDs of another type":   fill(review, `,"uid":0`, `}}`),
		"objects":                fill(review, `,"object":{}`, `}}`),
		"specs that are numbers": fill(review+`,"object":{"spec":0`, `,"spec":0`, `}}}`),
		"unknown members":        fill(review, `,"":0`, `}}`),
		"a long name":            fill(review+`,"`, `a`, `":0}}`),
		"arrays":                 fill(review+`,"object":`, `[`, ``),
		"a long VM name":         fill(review+`,"object":{"spec":{"vmname":"`, `a`, `"}}}}`),
		"YAML":                   fill("apiVersion: admission.k8s.io/v1\nrequest: {conditions: [{}", `,{}`, "]}"),
	}
}

// TestHostileReviewsAllocateLittle counts all that a review allocates beside its body. Of that,
// only what the nesting takes grows with the body, up to the depth that the decoder accepts.
func TestHostileReviewsAllocateLittle(t *testing.T) {
	vms := newHarness(t, nil, aCloud("default"))
	for kind, judge := range map[string]judge{"a Cloud": judgeCloud, "a VM": vms.judge} {
		for name, body := range hostile() {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, _ = judge(t.Context(), body)
			runtime.ReadMemStats(&after)
			if allocated, most := after.TotalAlloc-before.TotalAlloc, uint64(512<<10); allocated > most {
				t.Errorf("%s, %s: %d bytes were allocated for a body of %d, want at most %d", kind, name, allocated, len(body), most)
			}
		}
	}
}

// TestBodiesOfReviewsOfCloudsTakeTheirSizeOnce reads a body of the largest size.
func TestBodiesOfReviewsOfCloudsTakeTheirSizeOnce(t *testing.T) {
	h, text := newCloudHandler(time.Minute), sized(t, largestReview)
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, cloudPath, bytes.NewReader(text))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	body, release, err := h.read(request)
	runtime.ReadMemStats(&after)
	if err != nil || !bytes.Equal(body, text) {
		t.Fatalf("read %d bytes, %v", len(body), err)
	}
	expect(t, "slots for large reviews that are taken", 1, len(h.large))
	release()
	expect(t, "slots after the release", 0, len(h.large))
	if allocated, most := after.TotalAlloc-before.TotalAlloc, uint64(largestReview+smallReview+64<<10); allocated > most {
		t.Errorf("%d bytes were allocated, want at most %d", allocated, most)
	}
}
