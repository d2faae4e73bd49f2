"""From recordings and grades to a calibration that a guard starts from."""
