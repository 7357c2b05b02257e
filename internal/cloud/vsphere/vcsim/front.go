package vcsim

import (
	"bytes"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"sync"
)

// Front passes requests on to the simulator, counts them, and can make them fail.
type Front struct {
	to http.Handler
	// starts is called with the answer to a clone of which the VM is to be started: the
	// simulator leaves it stopped.
	starts func(answer string)
	// places answers requests that start a VM with an anti-affinity rule.
	places func(method, body string) (status int, answer string)

	mu      sync.Mutex
	counts  map[string]int
	calls   map[string]int
	lost    map[string]bool
	rewrite func(method, body string) string
	answer  func(method string) (status int, body string)
	instead func(method, body string) (status int, answer string)
	random  func(method string) bool
	stopped bool
	// password is the only one that is accepted; empty for any.
	password string
	// omitted is nil if answers have all properties.
	omitted *omitted
	// held makes tasks that have ended look as if they were running.
	held bool
	// starting is nil if a clone is answered once its VM is started.
	starting *starting
}

func newFront(host string) *Front {
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: host})
	proxy.ErrorLog = log.New(io.Discard, "", 0) // about clients that are gone
	return &Front{to: proxy, counts: map[string]int{}, calls: map[string]int{}, lost: map[string]bool{}}
}

var soapMethod = regexp.MustCompile(`<(?:\w+:)?Body[^>]*>\s*<(?:\w+:)?(\w+)`)

// ServeHTTP passes a request on.
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	method := ""
	if found := soapMethod.FindSubmatch(body); found != nil {
		method = string(found[1])
	}
	f.mu.Lock()
	f.counts[method]++
	f.calls[callOf(method, string(body))]++
	lost := f.lost[method] || f.random != nil && f.random(method)
	rewrite, start, held, starting, omitted := f.rewrite, !f.stopped, f.held, f.starting, f.omitted
	instead := f.replacements(method, string(body))
	f.mu.Unlock()
	for _, answer := range instead {
		if status, text := answer(); status != 0 {
			w.Header().Set("Content-Type", http.DetectContentType([]byte(text)))
			w.WriteHeader(status)
			_, _ = io.WriteString(w, text)
			return
		}
	}
	if rewrite != nil {
		body = []byte(rewrite(method, string(body)))
		r.ContentLength = int64(len(body))
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	answer := httptest.NewRecorder()
	f.to.ServeHTTP(answer, r)
	if start && method == "CloneVM_Task" && strings.Contains(string(body), "<powerOn>true</powerOn>") {
		if starting == nil {
			f.starts(answer.Body.String())
		} else {
			starting.begin(answer.Body.String(), f.starts)
		}
	}
	if starting != nil {
		starting.wait(answer.Body.String())
	}
	if lost {
		panic(http.ErrAbortHandler)
	}
	maps.Copy(w.Header(), answer.Header())
	w.Header().Del("Content-Length")
	w.WriteHeader(answer.Code)
	text := answer.Body.String()
	if held {
		text = strings.ReplaceAll(text, "<state>success</state>", "<state>running</state><progress>42</progress>")
	}
	if omitted != nil {
		text = omitted.apply(method, text)
	}
	_, _ = io.WriteString(w, text)
}

// replacements returns what may answer a request in place of the simulator. The caller
// holds the lock, and calls them without it.
func (f *Front) replacements(method, body string) (all []func() (status int, body string)) {
	if f.refused(method, body) {
		all = append(all, func() (int, string) { return Fault("InvalidLogin") })
	}
	if answer := f.answer; answer != nil {
		all = append(all, func() (int, string) { return answer(method) })
	}
	if instead := f.instead; instead != nil {
		all = append(all, func() (int, string) { return instead(method, body) })
	}
	if f.places != nil {
		all = append(all, func() (int, string) { return f.places(method, body) })
	}
	return all
}

// HoldTasks makes tasks look as if they were running, until restore is called.
func (f *Front) HoldTasks() (restore func()) {
	f.set(func() { f.held = true })
	return func() { f.set(func() { f.held = false }) }
}

// Sent returns how many requests of a method came, of all methods if it is empty.
func (f *Front) Sent(method string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if method != "" {
		return f.counts[method]
	}
	all := 0
	for _, n := range f.counts {
		all += n
	}
	return all
}

// Lose loses the answers of the methods, until restore is called.
func (f *Front) Lose(methods ...string) (restore func()) {
	f.set(func() {
		for _, method := range methods {
			f.lost[method] = true
		}
	})
	return func() { f.set(func() { clear(f.lost) }) }
}

// LoseRandomly loses the answer to each request for which lose returns true; nil for none.
func (f *Front) LoseRandomly(lose func(method string) bool) { f.set(func() { f.random = lose }) }

// LeaveStopped leaves the VMs of clones stopped, and answers them at once.
func (f *Front) LeaveStopped() { f.set(func() { f.stopped = true }) }

// Rewrite changes requests before they are passed on, until restore is called.
func (f *Front) Rewrite(rewrite func(method, body string) string) (restore func()) {
	f.set(func() { f.rewrite = rewrite })
	return func() { f.set(func() { f.rewrite = nil }) }
}

// Answer answers requests in place of the simulator where status is not 0, until
// restore is called.
func (f *Front) Answer(answer func(method string) (status int, body string)) (restore func()) {
	f.set(func() { f.answer = answer })
	return func() { f.set(func() { f.answer = nil }) }
}

// AnswerRequests is Answer for requests with a certain body. There may be no other replacement of
// requests meanwhile.
func (f *Front) AnswerRequests(answer func(method, body string) (status int, text string)) (restore func()) {
	f.set(func() { f.instead = answer })
	return func() { f.set(func() { f.instead = nil }) }
}

// Fault returns the answer with a fault, whose fields are XML, for Answer.
func Fault(name string, fields ...string) (status int, body string) {
	return http.StatusInternalServerError, `<?xml version="1.0" encoding="UTF-8"?><soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/" ` +
		`xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><soapenv:Body><soapenv:Fault><faultcode>ServerFaultCode</faultcode>` +
		`<faultstring>refused on esx01.secret.example</faultstring><detail><Fault xmlns="urn:vim25" xsi:type="` + name + `">` + strings.Join(fields, "") + `</Fault></detail></soapenv:Fault></soapenv:Body></soapenv:Envelope>`
}

var pool = regexp.MustCompile(`<pool[^>]*>[^<]*</pool>`)

// FailClones makes clones fail after they were accepted, until restore is called.
func (f *Front) FailClones() (restore func()) {
	return f.Rewrite(func(method, body string) string {
		if method != "CloneVM_Task" {
			return body
		}
		return pool.ReplaceAllString(body, "")
	})
}

func (f *Front) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}
