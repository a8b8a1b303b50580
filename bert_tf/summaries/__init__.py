"""What TensorBoard shows of a training; reporter is the file to open first."""
