package mockcloud

import (
	"net/http"
)

func ok(w http.ResponseWriter, _ *request) error {
	_, _ = w.Write([]byte("ok\n"))
	return nil
}

// done adapts a function without arguments and results.
func done(do func()) handlerFunc {
	return func(w http.ResponseWriter, _ *request) error {
		do()
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
}

// forID adapts a function that takes the ID of the path.
func forID(do func(string) error) handlerFunc {
	return func(w http.ResponseWriter, r *request) error {
		if err := do(r.vars[0]); err != nil {
			return err
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
}

func readInto(r *request, into any) error {
	data, err := readBody(r)
	if err != nil {
		return err
	}
	return decodeStrict(data, into)
}

// ready returns the handler of GET /readyz of a cloud that stops when closed is closed.
func ready(closed <-chan struct{}) handlerFunc {
	return func(w http.ResponseWriter, r *request) error {
		select {
		case <-closed:
			return problem(http.StatusServiceUnavailable, CodeUnavailable, "closing")
		default:
			return ok(w, r)
		}
	}
}
