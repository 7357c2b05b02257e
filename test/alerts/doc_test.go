// Package alerts_test scrapes a manager with a real Prometheus, which evaluates the
// alerts and answers the queries of the dashboards, while clouds fail. Windows and
// waiting times are shortened to a hundredth.
//
//	alerts_test.go      the test: alerts fire and clear
//	faults_test.go      the clouds, and what makes each alert fire
//	rules_test.go       the rules with shorter times, and the queries of the dashboards
//	prometheus_test.go  Prometheus as a process
package alerts_test
