package mockcloud

import (
	"crypto/sha256"
	"net/http"
)

// handleCreate handles POST /servers.
func (s *servers) handleCreate(w http.ResponseWriter, r *request) error {
	data, err := readBody(r)
	if err != nil {
		return err
	}
	var body createServer
	if err := decodeStrict(data, &body); err != nil {
		return err
	}
	if err := body.supported(s.core); err != nil {
		return err
	}
	if err := body.check(); err != nil {
		return err
	}
	key, err := s.keys.of(r, "servers", data)
	if err != nil {
		return err
	}
	if body.UserData != nil {
		sum := sha256.Sum256(body.UserData)
		body.UserData = sum[:]
	}
	answer, err := s.create(body, key, r.id)
	if err != nil {
		return err
	}
	return answer.write(w)
}

// handleGet handles GET /servers/{id}.
func (s *servers) handleGet(w http.ResponseWriter, r *request) error {
	found, err := s.reads.server(r.vars[0])
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, s.views.represent(found, s.core.now()))
}

// handleStatus handles GET /servers/{id}/status.
func (s *servers) handleStatus(w http.ResponseWriter, r *request) error {
	found, err := s.reads.server(r.vars[0])
	if err != nil {
		return err
	}
	shown := found.Server
	s.views.measure(found, &shown, s.core.now())
	status := map[string]any{"cpuUtilization": shown.CPUUtilization}
	if s.core.profile == Extended {
		status["state"] = shown.State
	}
	return writeJSON(w, http.StatusOK, s.core.quirks.Load().shapeStatus(status))
}

// handlePatch handles PATCH /servers/{id}.
func (s *servers) handlePatch(w http.ResponseWriter, r *request) error {
	data, err := readBody(r)
	if err != nil {
		return err
	}
	var body patchServer
	if err := decodeStrict(data, &body); err != nil {
		return err
	}
	if err := body.supported(s.core); err != nil {
		return err
	}
	if err := body.check(); err != nil {
		return err
	}
	answer, err := s.update(r.vars[0], body, r.id)
	if err != nil {
		return err
	}
	return answer.write(w)
}

// handleDelete handles DELETE /servers/{id}.
func (s *servers) handleDelete(w http.ResponseWriter, r *request) error {
	answer, err := s.delete(r.vars[0], ByClient, r.id)
	if err != nil {
		return err
	}
	return answer.write(w)
}
