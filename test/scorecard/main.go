// Command scorecard is the project's own suite for operator-sdk scorecard: it runs
// one test in a pod in the operator's namespace and prints the result.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	scorecard "github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/privatecloud/operator/api/v1alpha1"
)

// testTime bounds a test. scorecard has to wait longer: --wait-time=120s.
const testTime = 100 * time.Second

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), testTime)
	result := run(ctx, os.Args[1:])
	cancel()
	output, err := json.MarshalIndent(result, "", "  ")
	if err != nil {
		fmt.Fprintln(os.Stderr, "scorecard:", err)
		os.Exit(1)
	}
	fmt.Println(string(output))
}

// run returns a status in every case: scorecard shows any other output as an empty
// result.
func run(ctx context.Context, args []string) scorecard.TestStatus {
	if len(args) != 1 || args[0] != vmLifecycle {
		return failed(fmt.Sprint(args), "", fmt.Errorf("the one test there is: %s", vmLifecycle))
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return failed(vmLifecycle, "", fmt.Errorf("find the API server: %w", err))
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return failed(vmLifecycle, "", err)
		}
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return failed(vmLifecycle, "", fmt.Errorf("make a client: %w", err))
	}
	l := &lifecycle{client: c, namespace: os.Getenv("SCORECARD_NAMESPACE"), timeout: 45 * time.Second}
	if err := l.run(ctx); err != nil {
		return failed(vmLifecycle, l.log.String(), err)
	}
	return status(scorecard.TestResult{Name: vmLifecycle, State: scorecard.PassState, Log: l.log.String()})
}

func failed(test, log string, err error) scorecard.TestStatus {
	return status(scorecard.TestResult{Name: test, State: scorecard.FailState, Log: log, Errors: []string{err.Error()}})
}

func status(result scorecard.TestResult) scorecard.TestStatus {
	return scorecard.TestStatus{Results: []scorecard.TestResult{result}}
}
