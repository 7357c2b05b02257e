package tracing

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

const (
	grpcProtocol = "grpc"
	httpProtocol = "http/protobuf"
)

// protocol returns the protocol to export with, empty if tracing is off. It is off
// unless an endpoint is set. Its errors name the variable and what it may be.
func protocol(getenv func(string) string) (string, error) {
	if strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") {
		return "", nil
	}
	switch exporter := getenv("OTEL_TRACES_EXPORTER"); exporter {
	case "", "otlp":
	case "none":
		return "", nil
	default:
		return "", fmt.Errorf("OTEL_TRACES_EXPORTER is %q: set otlp or none", exporter)
	}
	variable, endpoint := first(getenv, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
	if endpoint == "" {
		return "", nil
	}
	// The text is not quoted: it may hold a password.
	if u, err := url.Parse(endpoint); err != nil || u.Hostname() == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return "", fmt.Errorf("%s is not a URL such as http://collector:4318", variable)
	}
	if err := checkSampler(getenv); err != nil {
		return "", err
	}
	switch variable, protocol := first(getenv, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"); protocol {
	case "", httpProtocol:
		return httpProtocol, nil
	case grpcProtocol:
		return grpcProtocol, nil
	default:
		return "", fmt.Errorf("%s is %q: set %s or %s", variable, protocol, httpProtocol, grpcProtocol)
	}
}

// checkSampler fails for values that the SDK would replace by its defaults, which
// sample everything.
func checkSampler(getenv func(string) string) error {
	name := strings.TrimPrefix(strings.ToLower(strings.TrimSpace(getenv("OTEL_TRACES_SAMPLER"))), "parentbased_")
	switch name {
	case "", "always_on", "always_off":
		return nil
	case "traceidratio":
		ratio, err := strconv.ParseFloat(strings.TrimSpace(getenv("OTEL_TRACES_SAMPLER_ARG")), 64)
		if err != nil || !(ratio >= 0 && ratio <= 1) {
			return errors.New("OTEL_TRACES_SAMPLER_ARG is not a number from 0 to 1, such as 0.01")
		}
		return nil
	default:
		return errors.New("OTEL_TRACES_SAMPLER is not always_on, always_off or traceidratio, with or without the prefix parentbased_")
	}
}

// first returns the first of the variables that is set, and its value.
func first(getenv func(string) string, variables ...string) (variable, value string) {
	for _, variable := range variables {
		if value := strings.TrimSpace(getenv(variable)); value != "" {
			return variable, value
		}
	}
	return "", ""
}
