// Package zertorewind is the root of the module.
package zertorewind
