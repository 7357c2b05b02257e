package mockcloud

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
)

// settings changes the capabilities, the behaviour and the quirks of a cloud.
type settings struct {
	core *core
}

func (s *settings) setCapability(name Capability, on bool) error {
	s.core.mu.Lock()
	defer s.core.mu.Unlock()
	caps := maps.Clone(*s.core.caps.Load())
	if _, known := caps[name]; !known {
		return fmt.Errorf("unknown capability %q", name)
	}
	if on && s.core.profile == Core && name != UniqueNames {
		return fmt.Errorf("the core profile has no capability %q", name)
	}
	caps[name] = on
	s.core.caps.Store(&caps)
	return nil
}

func (s *settings) behaviour() Behaviour {
	s.core.mu.RLock()
	defer s.core.mu.RUnlock()
	return s.core.behave
}

func (s *settings) setBehaviour(b Behaviour) error {
	if err := b.validate(); err != nil {
		return err
	}
	model, err := parseUtilisation(b.Utilisation)
	if err != nil {
		return err
	}
	s.core.mu.Lock()
	defer s.core.mu.Unlock()
	s.core.model.Store(&model)
	s.core.behave = b
	s.core.prohibitedNames = parseGlobs(b.ProhibitedNames)
	s.core.prohibitedTemplates = parseGlobs(b.ProhibitedTemplates)
	return nil
}

func (s *settings) quirks() Quirks { return *s.core.quirks.Load() }

func (s *settings) setQuirks(q Quirks) error {
	if err := q.validate(); err != nil {
		return err
	}
	s.core.mu.Lock()
	defer s.core.mu.Unlock()
	s.core.quirks.Store(&q)
	if q.keep() == 0 {
		s.core.st.pastServers, s.core.st.pastNetworks = nil, nil
	}
	return nil
}

// handleCapabilities handles GET /capabilities.
func (s *settings) handleCapabilities(w http.ResponseWriter, _ *request) error {
	list := []Capability{}
	for _, name := range AllCapabilities {
		if s.core.has(name) {
			list = append(list, name)
		}
	}
	body := map[string]any{"capabilities": list}
	return writeJSON(w, http.StatusOK, s.core.quirks.Load().shapeList(body, "Capabilities", "CAPABILITIES"))
}

func (s *settings) handleGetBehaviour(w http.ResponseWriter, _ *request) error {
	return writeJSON(w, http.StatusOK, s.behaviour())
}

// handlePatchBehaviour changes the fields that are in the body.
func (s *settings) handlePatchBehaviour(w http.ResponseWriter, r *request) error {
	b := s.behaviour()
	// Decoding would write to the arrays of the slices that are in use.
	b.ProhibitedNames, b.Templates = slices.Clone(b.ProhibitedNames), slices.Clone(b.Templates)
	b.ProhibitedTemplates = slices.Clone(b.ProhibitedTemplates)
	if err := readInto(r, &b); err != nil {
		return err
	}
	if err := s.setBehaviour(b); err != nil {
		return invalid("%v", err)
	}
	return writeJSON(w, http.StatusOK, s.behaviour())
}

func (s *settings) handlePatchCapabilities(w http.ResponseWriter, r *request) error {
	var body map[Capability]bool
	if err := readInto(r, &body); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(body)) {
		if err := s.setCapability(name, body[name]); err != nil {
			return invalid("%v", err)
		}
	}
	return s.handleCapabilities(w, r)
}

func (s *settings) handleGetQuirks(w http.ResponseWriter, _ *request) error {
	return writeJSON(w, http.StatusOK, s.quirks())
}

// handlePatchQuirks changes the quirks that are in the body.
func (s *settings) handlePatchQuirks(w http.ResponseWriter, r *request) error {
	q := s.quirks()
	if err := readInto(r, &q); err != nil {
		return err
	}
	if err := s.setQuirks(q); err != nil {
		return invalid("%v", err)
	}
	return s.handleGetQuirks(w, r)
}
