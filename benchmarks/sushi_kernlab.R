# Rscript sushi_kernlab.R FIRST SECOND LABELS COSTS GAMMAS OUT
#
# Fits the flipped rows of SVMcompare for each width and cost by kernlab's ksvm, as the
# authors' package rankSVMcompare does (GitHub: tdhock/rankSVMcompare). Writes one row of
# doubles per fit: gamma, C, the bias b (f = u.d - b), signed dual weights of the rows.
suppressMessages(library(kernlab))
args <- commandArgs(TRUE)
first <- as.matrix(read.csv(args[1], header = FALSE))
second <- as.matrix(read.csv(args[2], header = FALSE))
labels <- scan(args[3], quiet = TRUE)
out <- file(args[6], "wb")
m <- nrow(first)
one <- 1:m
two <- m + one
for (gamma in scan(args[5], quiet = TRUE)) {
  K <- kernelMatrix(rbfdot(gamma), rbind(first, second))
  differences <- K[one, one] - K[one, two] - K[two, one] + K[two, two]
  for (C in scan(args[4], quiet = TRUE)) {
    fit <- ksvm(as.kernelMatrix(differences), labels, type = "C-svc", C = C, fit = FALSE)
    weights <- rep(0, m)
    weights[fit@SVindex] <- fit@coef[[1]]
    writeBin(c(gamma, C, fit@b, weights), out)
  }
}
close(out)
