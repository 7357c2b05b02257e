package mockcloud

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// QuirksHeader is a header of answers that need not conform to the OpenAPI
// document. Its value is the quirks that are on.
const QuirksHeader = "X-Mock-Quirks"

// throttled is how many calls there are for each with status 429 under
// Quirks.RetryAfterDate.
const throttled = 10

// quirkStage serves calls of the API with the quirks that are on.
type quirkStage struct {
	core   *core
	router *router
	sender *sender
	// throttles counts calls for the quirk retryAfterDate.
	throttles   atomic.Uint64
	connections connections
}

// serve serves a call of the API with the quirks that are on.
func (s *quirkStage) serve(w http.ResponseWriter, r *request, to route) {
	q := s.core.quirks.Load()
	if *q == (Quirks{}) {
		s.router.authorized(w, r, to)
		return
	}
	s.serveWith(w, r, to, q)
}

// serveWith serves a call with the quirks that change whole answers.
func (s *quirkStage) serveWith(w http.ResponseWriter, r *request, to route, q *Quirks) {
	reused := q.ReplayResets && s.connections.reused(r.RemoteAddr)
	if !q.documented() {
		w.Header().Set(QuirksHeader, q.String())
	}
	if to.streams {
		s.router.authorized(w, r, to)
		return
	}
	if q.RetryAfterDate > 0 && s.throttles.Add(1)%throttled == 0 {
		s.refuseUntil(w, time.Duration(q.RetryAfterDate))
		return
	}
	listing := r.Method == http.MethodGet && to.template == "/servers"
	if listing && q.GzipBomb > 0 {
		sendGzipBomb(w, q.GzipBomb, s.core.profile)
		return
	}
	rec := &recorder{answer: answer{header: w.Header().Clone()}}
	s.router.authorized(rec, r, to)
	rec.WriteHeader(http.StatusOK)
	rec.body = rec.wrote.Bytes()
	out := &rec.answer
	if reused && r.Method == http.MethodPost && to.template != "/sessions" && out.status < 300 {
		abort(w)
		return
	}
	if listing && q.HugeListing > 0 && out.status == http.StatusOK {
		out.stream = hugeListing(out.body, q.HugeListing, s.core.profile == Core)
	}
	if r.URL.Path == "/capabilities" {
		q.answerCapabilities(out)
	}
	q.answerErrors(out)
	q.answerContentType(out)
	s.sender.send(w, r, out, nil, 0)
}

// refuseUntil answers 429 with a date of a clock that is ahead.
func (s *quirkStage) refuseUntil(w http.ResponseWriter, ahead time.Duration) {
	// A nil value keeps the server from adding the header.
	w.Header()["Date"] = nil
	w.Header().Set("Retry-After", s.core.now().Add(ahead).Format(http.TimeFormat))
	writeProblem(w, problem(http.StatusTooManyRequests, CodeRateLimited, "too many calls"))
}

func (a *answer) become(status int, contentType, body string) {
	a.status, a.body, a.stream = status, []byte(body), nil
	a.header.Del("Content-Type")
	if contentType != "" {
		a.header.Set("Content-Type", contentType)
	}
}

const page404 = "<!DOCTYPE html><html><head><title>%[1]d</title></head><body><h1>%[1]d %[2]s</h1></body></html>\n"

func (q *Quirks) answerCapabilities(a *answer) {
	switch q.Capabilities {
	case "":
	case "html":
		a.become(http.StatusOK, "text/html; charset=utf-8", fmt.Sprintf(page404, http.StatusOK, "Welcome"))
	case "empty":
		a.become(http.StatusOK, "application/json", "{}\n")
	default:
		status, _ := strconv.Atoi(q.Capabilities)
		p := encoded("", "capabilities", problem(status, codeOf(status), "no capabilities here")).Value
		a.become(status, "application/problem+json", string(p))
	}
}

// answerErrors changes the bodies of answers with status 404, and of problems.
func (q *Quirks) answerErrors(a *answer) {
	if a.status == http.StatusNotFound {
		text := http.StatusText(a.status)
		switch q.Plain404 {
		case "empty":
			a.become(a.status, "", "")
		case "json":
			a.become(a.status, "application/json", `{"message":"`+text+`"}`+"\n")
		case "html":
			a.become(a.status, "text/html; charset=utf-8", fmt.Sprintf(page404, a.status, text))
		case "text":
			a.become(a.status, "text/plain; charset=utf-8", "404 page not found\n")
		}
	}
	if q.NoCodes && strings.HasPrefix(a.header.Get("Content-Type"), "application/problem+json") {
		var p Problem
		if json.Unmarshal(a.body, &p) == nil {
			// The type of a problem has its code, too.
			body := asObject(map[string]any{"type": "about:blank", "title": p.Title, "status": p.Status, "detail": p.Detail})
			a.body = encoded("", "problem", body).Value
		}
	}
}

// answerContentType changes the content type of JSON bodies.
func (q *Quirks) answerContentType(a *answer) {
	if q.ContentType == "" || !strings.Contains(a.header.Get("Content-Type"), "json") {
		return
	}
	if q.ContentType != "none" {
		a.header.Set("Content-Type", q.ContentType)
		return
	}
	// A nil value keeps the server from guessing the header.
	a.header["Content-Type"] = nil
}

// hugeListing writes a listing with n made-up servers after those of body.
func hugeListing(body []byte, n int, core bool) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		list, tail := bytes.TrimSpace(body), []byte("]\n")
		if !core {
			var page struct {
				Servers json.RawMessage `json:"servers"`
			}
			_ = json.Unmarshal(body, &page)
			list, tail = append([]byte(`{"servers":`), page.Servers...), []byte("]}\n")
		}
		chunk := bytes.NewBuffer(bytes.TrimSuffix(list, []byte("]")))
		empty := bytes.HasSuffix(chunk.Bytes(), []byte("["))
		for i := range n {
			if !empty {
				chunk.WriteByte(',')
			}
			empty = false
			fmt.Fprintf(chunk, `{"id":"made-up-%[1]d","name":"made-up-%[1]d","state":"ACTIVE","cpu":1,"memory":1}`, i)
			if chunk.Len() > 64<<10 {
				if _, err := w.Write(chunk.Bytes()); err != nil {
					return
				}
				chunk.Reset()
			}
		}
		chunk.Write(tail)
		_, _ = w.Write(chunk.Bytes())
	}
}
