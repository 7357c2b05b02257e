package rest

import (
	"net/http"
	"regexp"
	"slices"

	"github.com/privatecloud/operator/internal/cloud"
)

// The words in refusals of calls with an idempotency key. There is no common code: the
// Internet-Draft of the header Idempotency-Key has example texts only.
var (
	keyWords        = regexp.MustCompile(`(?i)idempoten`)
	inProgressWords = regexp.MustCompile(`(?i)\b(key|request)[ _-]?(is )?(already )?in[ _-]?progress|being processed|request is outstanding`)
	reusedWords     = regexp.MustCompile(`(?i)reus|mismatch|different|already (been )?used|payload|conflicting`)
)

// keyStatuses are those of refusals that may be about the key.
var keyStatuses = []int{http.StatusBadRequest, http.StatusConflict, http.StatusUnprocessableEntity, http.StatusLocked, http.StatusTooEarly}

// aboutKey returns what a refusal means that is about the idempotency key of the call: Busy if the
// first call with the key is in progress, so that it may still take effect, or KeyReused.
// Where names are not unique, a 409 without a code cannot be about the name of a create.
func aboutKey(call *call, status int, p wireProblem) (kind cloud.Kind, about bool) {
	_, known := kindOfCode[p.Code]
	mentioned := keyWords.MatchString(p.said)
	switch {
	case call.key == "" || known || !slices.Contains(keyStatuses, status):
		return "", false
	case status == http.StatusConflict && inProgressWords.MatchString(p.said):
		return cloud.Busy, true
	case mentioned && status != http.StatusLocked && status != http.StatusTooEarly && reusedWords.MatchString(p.said):
		return cloud.KeyReused, true
	case status == http.StatusBadRequest:
		return "", false
	case mentioned && status == http.StatusUnprocessableEntity && !inProgressWords.MatchString(p.said):
		return cloud.KeyReused, true
	case mentioned, inProgressWords.MatchString(p.said):
		return cloud.Busy, true
	case status == http.StatusConflict && p.Code == "" && call.about == aboutCreate && call.sharedNames:
		return cloud.Busy, true
	}
	return "", false
}
