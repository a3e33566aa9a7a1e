SELECT sum(x0) AS a0, sum(x1) AS a1, sum(x2) AS a2, sum(x3) AS a3, sum(y0) AS b0, sum(y1) AS b1, sum(y2) AS b2,
       sum(y3) AS b3
FROM probe_text16 JOIN build_text16 ON pk = bk
