package catalog

// DefaultData is the embedded file, for the benchmark that reads it.
var DefaultData = defaults
