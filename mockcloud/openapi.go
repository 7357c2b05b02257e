package mockcloud

import (
	_ "embed"
	"fmt"
	"net/http"
	"sync"

	"sigs.k8s.io/yaml"
)

//go:embed openapi.yaml
var openapiYAML []byte

var openapiJSON = sync.OnceValue(func() []byte {
	data, err := yaml.YAMLToJSON(openapiYAML)
	if err != nil {
		panic(fmt.Sprintf("openapi.yaml: %v", err))
	}
	return data
})

// OpenAPI returns the OpenAPI 3 document of the REST API, both profiles, as
// JSON. The caller must not change it.
func OpenAPI() []byte { return openapiJSON() }

// handleOpenAPI handles GET /openapi.json.
func handleOpenAPI(w http.ResponseWriter, _ *request) error {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(OpenAPI())
	return nil
}
