// Package drain removes what the operator manages before the operator itself is
// removed: it requests the deletions, and waits until the operator has completed
// them. It never removes a finalizer.
//
//	client.go   the client, with a bounded rate
//	options.go  what a drain is asked to do, and its command line
//	scope.go    which objects it covers
//	drain.go    the rounds: list, request, report
//	report.go   the plan, the progress, and what is left and why
package drain
