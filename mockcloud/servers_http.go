package mockcloud

import (
	"crypto/sha256"
	"net/http"
)

// handleCreateServer handles POST /servers.
func (c *Cloud) handleCreateServer(w http.ResponseWriter, r *request) error {
	data, err := readBody(r)
	if err != nil {
		return err
	}
	var body createServer
	if err := decodeStrict(data, &body); err != nil {
		return err
	}
	if err := body.supported(c.core); err != nil {
		return err
	}
	if err := body.check(); err != nil {
		return err
	}
	key, err := c.keys.of(r, "servers", data)
	if err != nil {
		return err
	}
	if body.UserData != nil {
		sum := sha256.Sum256(body.UserData)
		body.UserData = sum[:]
	}
	answer, err := c.createServer(body, key, r.id)
	if err != nil {
		return err
	}
	return answer.write(w)
}

// handleGetServer handles GET /servers/{id}.
func (c *Cloud) handleGetServer(w http.ResponseWriter, r *request) error {
	found, err := c.reads.server(r.vars[0])
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, c.views.represent(found, c.core.now()))
}

// handleServerStatus handles GET /servers/{id}/status.
func (c *Cloud) handleServerStatus(w http.ResponseWriter, r *request) error {
	found, err := c.reads.server(r.vars[0])
	if err != nil {
		return err
	}
	s := found.Server
	c.views.measure(found, &s, c.core.now())
	status := map[string]any{"cpuUtilization": s.CPUUtilization}
	if c.core.profile == Extended {
		status["state"] = s.State
	}
	return writeJSON(w, http.StatusOK, c.core.quirks.Load().shapeStatus(status))
}

// handlePatchServer handles PATCH /servers/{id}.
func (c *Cloud) handlePatchServer(w http.ResponseWriter, r *request) error {
	data, err := readBody(r)
	if err != nil {
		return err
	}
	var body patchServer
	if err := decodeStrict(data, &body); err != nil {
		return err
	}
	switch {
	case (body.CPU != nil || body.Memory != nil) && !c.core.has(Resize):
		return unsupported("resize")
	case body.PowerState != nil && !c.core.has(Power):
		return unsupported("powerState")
	case body.suspends() && !c.core.has(Suspend):
		return unsupported("powerState Suspended")
	case body.PowerOffMode != nil && !c.core.has(SoftPowerOff):
		return unsupported("powerOffMode")
	case body.Labels != nil && !c.core.has(Labels):
		return unsupported("labels")
	case body.Disks != nil && !c.core.has(Disks):
		return unsupported("disks")
	}
	if err := checkDisks(body.Disks); err != nil {
		return err
	}
	if err := body.checkPowerState(); err != nil {
		return err
	}
	if err := checkSize(body.CPU, body.Memory); err != nil {
		return err
	}
	answer, err := c.updateServer(r.vars[0], body, r.id)
	if err != nil {
		return err
	}
	return answer.write(w)
}

// handleDeleteServer handles DELETE /servers/{id}.
func (c *Cloud) handleDeleteServer(w http.ResponseWriter, r *request) error {
	answer, err := c.deleteServer(r.vars[0], ByClient, r.id)
	if err != nil {
		return err
	}
	return answer.write(w)
}

// handleCapabilities handles GET /capabilities.
func (c *Cloud) handleCapabilities(w http.ResponseWriter, _ *request) error {
	list := []Capability{}
	for _, name := range AllCapabilities {
		if c.core.has(name) {
			list = append(list, name)
		}
	}
	body := map[string]any{"capabilities": list}
	return writeJSON(w, http.StatusOK, c.core.quirks.Load().shapeList(body, "Capabilities", "CAPABILITIES"))
}
