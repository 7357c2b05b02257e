package e2e_test

import (
	"encoding/json"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
)

// scorecard decodes the output of operator-sdk scorecard: the state of each test, and
// its suggestions, of which there should be none.
func scorecard(output string) map[string]string {
	GinkgoHelper()
	_, output, _ = strings.Cut(output, "{")
	var list v1alpha3.TestList
	Expect(json.NewDecoder(strings.NewReader("{"+output)).Decode(&list)).To(Succeed(), output)
	states := map[string]string{}
	for _, test := range list.Items {
		for _, result := range test.Status.Results {
			states[result.Name] = string(result.State)
			if len(result.Suggestions) > 0 {
				states[result.Name] += ", but: " + strings.Join(result.Suggestions, "; ")
			}
		}
	}
	return states
}
