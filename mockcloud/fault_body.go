package mockcloud

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strconv"
	"time"
)

func durationOf(d Duration) time.Duration { return time.Duration(d) }

// hugeBody writes valid JSON with a string of size bytes.
func hugeBody(size int64) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		chunk := bytes.Repeat([]byte("x"), 64<<10)
		if _, err := io.WriteString(w, `{"id":"`); err != nil {
			return
		}
		for left := size; left > 0; left -= int64(len(chunk)) {
			if _, err := w.Write(chunk[:min(left, int64(len(chunk)))]); err != nil {
				return
			}
		}
		_, _ = io.WriteString(w, `","name":"huge","servers":[]}`)
	}
}

// corrupt changes the values in a JSON body. It does not change other bodies.
func corrupt(body []byte, how string) []byte {
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		return body
	}
	return encoded("", how, corrupted(value, how, true)).Value
}

func corrupted(value any, how string, top bool) any {
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			v[key] = corrupted(v[key], how, false)
		}
		return v
	case []any:
		// An empty list in an object is treated as a scalar.
		if len(v) == 0 && !top {
			return corruptedScalar(value, how)
		}
		for i := range v {
			v[i] = corrupted(v[i], how, false)
		}
		return v
	}
	return corruptedScalar(value, how)
}

func corruptedScalar(value any, how string) any {
	if how == CorruptNulls {
		return nil
	}
	switch value.(type) {
	case string:
		return 12345
	case []any:
		return "not a list"
	default:
		return "not a number"
	}
}

// sender writes answers, and waits for the delays of calls.
type sender struct {
	core *core
}

// send writes an answer. It truncates it if cut is set, and limits it to perSecond
// bytes per second.
func (s *sender) send(w http.ResponseWriter, r *request, out *answer, cut *Truncation, perSecond int) {
	maps.Copy(w.Header(), out.header)
	if out.stream != nil {
		w.WriteHeader(out.status)
		out.stream(w)
		return
	}
	body, short := out.body, false
	if cut != nil {
		keep := cut.Keep
		if keep < 0 {
			keep = max(0, len(body)+keep)
		}
		short = keep < len(body) && !cut.Clean
		if short {
			w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		}
		body = body[:min(keep, len(body))]
	}
	w.WriteHeader(out.status)
	s.writePaced(w, r, body, perSecond)
	if short {
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// writePaced writes at most perSecond bytes per second, or all at once if it is 0.
func (s *sender) writePaced(w http.ResponseWriter, r *request, body []byte, perSecond int) {
	if perSecond == 0 {
		_, _ = w.Write(body)
		return
	}
	control := http.NewResponseController(w)
	_ = control.Flush()
	// At most ten writes per second.
	step := max(1, perSecond/10)
	interval := time.Duration(step) * time.Second / time.Duration(perSecond)
	for len(body) > 0 {
		select {
		case <-s.core.clock.After(interval):
		case <-r.Context().Done():
			return
		case <-s.core.closed:
			return
		}
		n := min(step, len(body))
		if _, err := w.Write(body[:n]); err != nil {
			return
		}
		_ = control.Flush()
		body = body[n:]
	}
}
