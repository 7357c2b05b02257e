// Package tracing exports OpenTelemetry traces by OTLP, as the environment
// variables of the OpenTelemetry specification say.
//
//	tracing.go  Start, and what the spans say of this process
//	env.go      whether and how to export
//	export.go   the exporter, and what is logged when it fails
//
// Spans are made where the work is done: internal/reconciler has one for each
// reconcile, and internal/cloud/transport one for each request to a cloud.
package tracing
